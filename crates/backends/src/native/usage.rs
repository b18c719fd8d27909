//! What a sandbox uses, and what it may use.

use engine::init::wire::{Request, Used};
use jiff::Timestamp;
use model::Problem;
use model::limits::{Defaults, Limits};
use model::sandbox::Usage;
use model::units::Size;

use super::{Native, Running, talk};

/// What limits leave of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    pub cpus: f64,
    pub memory: Size,
    pub disk: Size,
}

impl Room {
    #[must_use]
    pub fn within(limits: &Limits) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1.0, |all| all.get() as f64);
        Self {
            cpus: limits.cpus.map_or_else(processors, |cpus| f64::from(cpus.0) / 1000.0),
            memory: limits.memory.unwrap_or_else(all_memory),
            disk: limits.disk.unwrap_or(Defaults::DISK),
        }
    }
}

impl Native {
    pub async fn usage(&self, running: &Running, limits: &Limits) -> Result<Usage, Problem> {
        let disk = async {
            if limits.disk.is_some() {
                self.disk_use(running.id).await
            } else {
                self.written(running.id).await
            }
        };
        let folder = self.folder(running);
        let (used, disk) = tokio::try_join!(talk::ask::<Used>(&folder.0, &Request::Usage), disk)?;
        // Where the kernel counts it, what is shared counts once.
        let counted = self.memory(running.id)?;
        let room = Room::within(limits);
        Ok(Usage {
            time: Timestamp::now(),
            cpu_nanoseconds: used.cpu,
            cpus: room.cpus,
            memory: counted.map_or(Size(used.memory), |counted| counted.used),
            memory_total: room.memory,
            disk,
            disk_total: room.disk,
        })
    }
}

fn all_memory() -> Size {
    let info = rustix::system::sysinfo();
    Size((info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1))))
}
