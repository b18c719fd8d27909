//! Version 2: one hierarchy, in which a directory hands controllers down to its children.

use std::fs;
use std::io;
use std::path::Path;

use model::limits::Limits;

use super::Error;
use super::group::{Setting, write};
use super::layout::Controller;

/// What to write into a new cgroup for this controller.
pub(super) fn settings(controller: Controller, limits: &Limits) -> Vec<Setting> {
    match controller {
        Controller::Cpu => {
            let quota = |thousandths: u32| PERIOD_US * u64::from(thousandths) / 1000;
            let cpus = limits.cpus.into_iter();
            cpus.map(|cpus| Setting::must("cpu.max", format!("{} {PERIOD_US}", quota(cpus.0)))).collect()
        }
        // `memory.oom.group` stays off: one process too many dies, not the sandbox with its first process.
        Controller::Memory => limits
            .memory
            .into_iter()
            .flat_map(|memory| {
                [
                    Setting::must("memory.max", memory.0.to_string()),
                    Setting::if_there("memory.swap.max", "0".to_owned()),
                ]
            })
            .collect(),
        Controller::Pids => {
            limits.pids.into_iter().map(|pids| Setting::must("pids.max", pids.to_string())).collect()
        }
    }
}

/// Lets the children of `directory` have this controller.
pub(super) fn hand_down(directory: &Path, controller: Controller) -> Result<(), Error> {
    let path = directory.join("cgroup.subtree_control");
    let handed = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) if source.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(Error::Read { path, source }),
    };
    if handed.split_whitespace().any(|name| name == controller.name()) {
        return Ok(());
    }
    write(&path, &format!("+{controller}"))
}

/// Since 5.19.
pub(super) const MEMORY_PEAK: &str = "memory.peak";
pub(super) const MEMORY_USED: &str = "memory.current";
/// Has a line `oom_kill N`.
pub(super) const MEMORY_EVENTS: &str = "memory.events";

const PERIOD_US: u64 = 100_000;
