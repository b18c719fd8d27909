//! Limits: enforced hard, or refused with the remedy, or, where the user said so, accepted as a caveat.

use engine::cgroup::{Cgroup, Controller, Unenforceable};
use engine::init::wire::Request;
use engine::launcher::Rights;
use engine::machine::DiskImages;
use engine::view::DiskKind;
use model::caveat::CaveatKind;
use model::limits::{Defaults, Limits};
use model::sandbox::MemoryUse;
use model::units::Size;
use model::{Caveat, Problem, SandboxId};

use super::problem::NativeError;
use super::{Inner, Native, Running, talk};

/// What holds for one sandbox.
#[derive(Debug, Default)]
pub(super) struct Enforced {
    pub(super) cgroup: Option<Cgroup>,
    pub(super) disk_kind: DiskKind,
    pub(super) caveats: Vec<Caveat>,
}

impl Native {
    /// What the kernel has counted against a sandbox's memory limit; `None` where it has no limit of its own. Reads what
    /// the kernel holds in memory, so it does not block.
    pub fn memory(&self, id: SandboxId) -> Result<Option<MemoryUse>, NativeError> {
        let Some(cgroup) = self.0.machine.cgroup.find(id) else { return Ok(None) };
        let (used, killed) = (cgroup.memory_used()?, cgroup.oom_kills()?);
        Ok(used.zip(killed).map(|(used, killed)| MemoryUse { used: Size(used), killed }))
    }

    /// The most memory that a sandbox ever used: all its processes together where the kernel counts that, because it has
    /// a limit of its own; else the largest of those that have ended.
    pub async fn peak_memory(&self, running: &Running) -> Result<Size, Problem> {
        let together = match self.0.machine.cgroup.find(running.id) {
            Some(cgroup) => cgroup.memory_peak().map_err(NativeError::from)?,
            None => None,
        };
        match together {
            Some(bytes) => Ok(Size(bytes)),
            None => talk::ask(&self.folder(running).0, &Request::LargestProcess).await.map(Size),
        }
    }
}

impl Inner {
    /// Makes what enforces these limits. On error nothing is left behind.
    pub(super) fn enforce(&self, id: SandboxId, limits: &Limits) -> Result<Enforced, NativeError> {
        let mut limits = limits.clone();
        let mut caveats = self.shared_caveats.clone();
        if let Err(missing) = self.machine.cgroup.can_enforce(&limits) {
            if !limits.best_effort {
                return Err(NativeError::Unenforceable(missing));
            }
            for Unenforceable { controller, remedy } in missing {
                forget(&mut limits, controller);
                let mut text = format!("{} is not enforced on this machine", flag(controller));
                if !remedy.is_empty() {
                    text += &format!("; this would change it: {remedy}");
                }
                caveats.push(Caveat::new(CaveatKind::Limit, text));
            }
        }
        // What is limited by a cgroup of its own needs no word about the shared one.
        if limits.memory.is_some() && limits.pids.is_some() {
            caveats.retain(|caveat| !self.shared_caveats.contains(caveat));
        }
        let disk_kind = match self.machine.disk_images {
            DiskImages::Usable => DiskKind::Image,
            DiskImages::NotRoot | DiskImages::NoLoopDevice | DiskImages::NoMkfs => DiskKind::Memory,
        };
        if limits.disk.is_some() {
            caveats.push(self.disk_caveat(disk_kind));
        }
        if limits.disk.is_none() {
            caveats.push(Caveat::new(CaveatKind::Limit, soft_disk(Rights::of_this_process())));
        }
        Ok(Enforced { cgroup: self.machine.cgroup.create(id, &limits)?, disk_kind, caveats })
    }

    /// What a disk of its own costs a sandbox.
    fn disk_caveat(&self, kind: DiskKind) -> Caveat {
        match kind {
            DiskKind::Image => {
                let text = "what it writes is on a disk of its own, so that --disk holds; a snapshot copies all of it, even \
                            where nothing runs, and so do forks, checks and promotions";
                Caveat::new(CaveatKind::Limit, text)
            }
            DiskKind::Memory => {
                let text = "what it writes is kept in memory, so that --disk holds; `zeno stop`, a restart and the \
                            end of its time lose it, and no snapshot can be made of it";
                let remedy = self.machine.disk_images.remedy();
                Caveat::new(CaveatKind::Durability, format!("{text}; this would change it: {remedy}"))
            }
        }
    }

    /// Removes the cgroup of a sandbox that has no processes any more.
    pub(super) fn unlimit(&self, id: SandboxId) -> Result<(), NativeError> {
        match self.machine.cgroup.find(id) {
            Some(cgroup) => Ok(cgroup.remove()?),
            None => Ok(()),
        }
    }
}

/// The option with which a limit of this kind is asked for.
pub(super) fn flag(controller: Controller) -> &'static str {
    match controller {
        Controller::Cpu => "--cpus",
        Controller::Memory => "--memory",
        Controller::Pids => "--pids",
    }
}

/// What the default disk limit is worth.
fn soft_disk(rights: Rights) -> String {
    let limit = Defaults::DISK;
    let closed = match rights {
        Rights::Root => "",
        Rights::User { .. } => ", nor what lies in folders that it closed to its own user",
    };
    format!(
        "the default disk limit of {limit} is soft: what it wrote is counted every few seconds, and it is stopped when that is \
         more; files that it deleted and still maps without holding them open are not counted{closed}; --disk sets a hard one"
    )
}

fn forget(limits: &mut Limits, controller: Controller) {
    match controller {
        Controller::Cpu => limits.cpus = None,
        Controller::Memory => limits.memory = None,
        Controller::Pids => limits.pids = None,
    }
}
