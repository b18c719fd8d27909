//! Cgroups of an ordinary user's own: what an administrator would delegate, made for one run of the suite.
//!
//! Never touches a cgroup it did not make.

use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::user::User;
use crate::files::{self, FileError};

/// The controllers zeno's limits rest on.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

#[derive(Debug)]
pub(super) struct Delegation {
    folders: Vec<PathBuf>,
}

impl Delegation {
    /// One folder per v1 hierarchy, named as `zeno doctor` tells an administrator to.
    pub(super) fn new(user: &User) -> Result<Self, DelegationError> {
        let mounts = files::read(Path::new("/proc/self/mounts"))?;
        let mut delegation = Self { folders: Vec::new() };
        for hierarchy in hierarchies(&mounts) {
            let folder = hierarchy.join(format!("zeno-{}", user.uid));
            files::make_folder(&folder)?;
            delegation.folders.push(folder.clone());
            for path in files::list(&folder)?.iter().chain([&folder]) {
                chown(path, Some(user.uid), Some(user.gid))
                    .map_err(|source| DelegationError::HandOver { path: path.clone(), source })?;
            }
        }
        if delegation.folders.is_empty() { Err(DelegationError::NoHierarchy) } else { Ok(delegation) }
    }

    pub(super) fn remove(mut self) -> Result<(), DelegationError> {
        self.folders.drain(..).try_for_each(|folder| remove_cgroup(&folder))
    }
}

impl Drop for Delegation {
    fn drop(&mut self) {
        for folder in self.folders.drain(..) {
            if let Err(error) = remove_cgroup(&folder) {
                eprintln!("left behind: {}", crate::chain(&error));
            }
        }
    }
}

/// Mount points of the v1 hierarchies that carry a controller we use.
fn hierarchies(mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let [_, folder, "cgroup", options, ..] = fields[..]
            && options.split(',').any(|option| CONTROLLERS.contains(&option))
        {
            found.push(PathBuf::from(folder));
        }
    }
    found
}

/// Children first. A cgroup whose last process is just dying is busy for a moment.
fn remove_cgroup(folder: &Path) -> Result<(), DelegationError> {
    for child in files::list(folder)?.into_iter().filter(|path| path.is_dir()) {
        remove_cgroup(&child)?;
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match std::fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(BUSY) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(source) => return Err(DelegationError::Remove { path: folder.to_owned(), source }),
        }
    }
}

const BUSY: i32 = rustix::io::Errno::BUSY.raw_os_error();

#[derive(Debug, thiserror::Error)]
pub(crate) enum DelegationError {
    #[error("this machine has no cgroup v1 hierarchy")]
    NoHierarchy,
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot hand over {}", path.display())]
    HandOver { path: PathBuf, source: io::Error },
    #[error("cannot remove the cgroup {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_v1_hierarchies_with_our_controllers_count() {
        let mounts = "\
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";
        assert_eq!(hierarchies(mounts), [PathBuf::from("/sys/fs/cgroup/cpu")]);
    }
}
