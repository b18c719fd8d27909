//! What sandboxes leave on a machine: mounts, cgroups, processes, bytes. Taken before and after, and compared.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::{RigError, proc};
use crate::files;
use crate::process;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Traces {
    pub(crate) mounts: usize,
    pub(crate) cgroups: usize,
    pub(crate) processes: usize,
    /// Beneath the folder that was asked about.
    pub(crate) disk_bytes: u64,
}

impl Traces {
    pub(crate) fn now(folder: &Path) -> Result<Self, RigError> {
        Ok(Self {
            mounts: files::read(Path::new("/proc/self/mountinfo"))?.lines().count(),
            cgroups: folders(Path::new("/sys/fs/cgroup"))?,
            processes: proc::all()?.len(),
            disk_bytes: disk(folder)?,
        })
    }
}

impl Traces {
    /// Other processes of the machine come and go; two hundred sandboxes would show all the same. The disk may hold
    /// more history, but not one sandbox's files.
    pub(crate) fn is_clean_after(&self, before: &Self, sandboxes: usize) -> bool {
        const SLACK_PROCESSES: usize = 20;
        let history = DATABASE + RECORD * sandboxes as u64;
        self.mounts <= before.mounts
            && self.cgroups <= before.cgroups
            && self.processes <= before.processes + SLACK_PROCESSES
            && self.disk_bytes <= before.disk_bytes + history
    }
}

/// What the daemon remembers of a sandbox that is gone, with its environment, and what it appends to before it folds.
const RECORD: u64 = 24 << 10;
const DATABASE: u64 = 4 << 20;

impl fmt::Display for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = model::units::Size(self.disk_bytes).rough();
        write!(f, "{} mounts, {} cgroups, {} processes, {disk}", self.mounts, self.cgroups, self.processes)
    }
}

fn folders(folder: &Path) -> Result<usize, RigError> {
    let mut count = 0;
    for path in files::list(folder)?.into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        count += 1 + folders(&path)?;
    }
    Ok(count)
}

fn disk(folder: &Path) -> Result<u64, RigError> {
    let line = process::line(Command::new("du").args(["-s", "-x", "--block-size=1"]).arg(folder))?;
    let bytes = line.split_whitespace().next().and_then(|bytes| bytes.parse().ok());
    Ok(bytes.expect("du -s begins with a number"))
}
