//! The caps of all sandboxes of one daemon together, which cost nothing when a sandbox is made.

use std::path::Path;

use model::Caveat;
use model::caveat::CaveatKind;
use model::limits::{Defaults, Limits};
use model::units::Size;

use super::Error;
use super::group::{Cgroup, apply, make, read, settings};
use super::layout::{Controller, Layout, asked_for};

/// What the launcher joins at its start, and everything it starts inherits.
#[derive(Clone, Debug)]
pub struct Shared {
    /// `None` when this user may use neither controller.
    pub cgroup: Option<Cgroup>,
    /// What is not capped here; each sandbox carries these.
    pub caveats: Vec<Caveat>,
}

impl Layout {
    /// Caps this daemon's own directory and makes the leaf for the launcher. The caps stand on the
    /// directory, so sandboxes with a cgroup of their own count too.
    ///
    /// # Errors
    ///
    /// The kernel refused a directory or value although this user may make cgroups there.
    pub fn shared(&self) -> Result<Shared, Error> {
        let caps = caps()?;
        let mut parts = Vec::new();
        let mut caveats = Vec::new();
        for controller in asked_for(&caps) {
            match self.place(controller) {
                Ok(place) => {
                    self.prepare(place, controller)?;
                    let root = self.root(place);
                    apply(&root, &settings(place.version, controller, &caps))?;
                    make(&root.join(LEAF))?;
                    parts.push((controller, place, root.join(LEAF)));
                }
                Err(missing) => caveats.push(caveat(controller, &missing.remedy)),
            }
        }
        Ok(Shared { cgroup: Cgroup::of(parts.into_iter()), caveats })
    }
}

fn caps() -> Result<Limits, Error> {
    let number = |path: &str, text: Option<&str>| {
        let number = text.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
        number.ok_or_else(|| Error::Garbled { path: Path::new(path).to_path_buf() })
    };
    let (meminfo, pid_max) = ("/proc/meminfo", "/proc/sys/kernel/pid_max");
    let memory = read(Path::new(meminfo))?;
    let memory = number(meminfo, memory.lines().find_map(|line| line.strip_prefix("MemTotal:")))? * 1024;
    let pids = number(pid_max, Some(&read(Path::new(pid_max))?))?;
    Ok(Limits {
        memory: Some(Size(memory / 100 * Defaults::SHARED_MEMORY_PERCENT)),
        pids: Some(u32::try_from(pids * Defaults::SHARED_PIDS_PERCENT / 100).unwrap_or(u32::MAX)),
        ..Limits::default()
    })
}

fn caveat(controller: Controller, remedy: &str) -> Caveat {
    let what = match controller {
        Controller::Memory => "the memory of all sandboxes together",
        Controller::Pids => "the number of processes of all sandboxes together",
        Controller::Cpu => "processor time",
    };
    let remedy = if remedy.is_empty() { String::new() } else { format!(" To change that: {remedy}") };
    Caveat::new(
        CaveatKind::Limit,
        format!("Nothing caps {what}: the {controller} cgroup controller cannot be used here.{remedy}"),
    )
}

pub(super) const LEAF: &str = "shared";
