//! Mounting one part of a plan.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, open_tree,
};

use super::rights::Rights;
use super::stage::Stage;
use super::wire::LaunchError;
use crate::view::{Lower, Part};

/// Where a sandbox's writes go.
#[derive(Debug)]
pub(super) struct Written {
    upper: PathBuf,
    work: PathBuf,
}

impl Written {
    pub(super) fn new(folder: &Path, upper: &str) -> Self {
        Self { upper: folder.join(upper), work: folder.join("work") }
    }
}

impl Stage {
    /// Mounts a part, attached nowhere.
    pub(super) fn mount_part(&mut self, part: &Part, written: &Written) -> Result<OwnedFd, LaunchError> {
        let failed =
            |e: rustix::io::Errno| LaunchError::new(format!("overlay `{}`", part.mountpoint.display()), e);
        let (above, base) = self.base_of(part)?;
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
        let set = |key: &str, value: &Path| {
            let what = || format!("overlay `{}` with {key} `{}`", part.mountpoint.display(), value.display());
            fsconfig_set_string(context.as_fd(), key, value).map_err(|e| LaunchError::new(what(), e))
        };
        for lower in above {
            let path = self.lower(lower)?;
            set("lowerdir+", &path)?;
        }
        if let Some(base) = &base {
            set("lowerdir+", &base.folder)?;
        }
        if let Some(data) = &part.data {
            let path = self.lower(data)?;
            set("datadir+", &path)?;
        }
        set("upperdir", &written.upper.join(&part.name))?;
        set("workdir", &written.work.join(&part.name))?;
        // Without this, every unmount would sync the whole file system that holds the store.
        fsconfig_set_flag(context.as_fd(), "volatile").map_err(failed)?;
        match self.rights {
            // So that folders of lower layers can be renamed.
            Rights::Root => fsconfig_set_string(context.as_fd(), "redirect_dir", "on").map_err(failed)?,
            Rights::User { .. } => fsconfig_set_flag(context.as_fd(), "userxattr").map_err(failed)?,
        }
        create(&context).map_err(|(error, kernel)| LaunchError { kernel, ..failed(error) })?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed)?;
        match &part.inner {
            None => Ok(mount),
            Some(inner) => {
                let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
                let what = || format!("find `{inner}` in the overlay `{}`", part.mountpoint.display());
                open_tree(mount, inner.as_str(), flags).map_err(|e| LaunchError::new(what(), e))
            }
        }
    }

    pub(super) fn lower(&mut self, lower: &Lower) -> Result<PathBuf, LaunchError> {
        match lower {
            Lower::Machine { mount, inside } => self.on_machine(mount, inside),
            Lower::Store(inside) => Ok(self.in_store(inside)),
            Lower::Hide(hides) => self.hiding_layer(hides),
        }
    }
}

/// Makes the file system. On error also what the kernel says about it.
pub(super) fn create(context: &OwnedFd) -> Result<(), (rustix::io::Errno, Option<String>)> {
    fsconfig_create(context.as_fd()).map_err(|error| (error, kernel_words(context)))
}

/// What the kernel says about a failed mount, for example `overlay: overlapping lowerdir path`.
fn kernel_words(context: &OwnedFd) -> Option<String> {
    let mut buffer = [0; 1024];
    let mut words = String::new();
    // Each read gives one message; there are never more than eight.
    for _ in 0..8 {
        match rustix::io::read(context, &mut buffer) {
            Ok(length) => words += &String::from_utf8_lossy(&buffer[..length]),
            Err(rustix::io::Errno::NODATA) => break,
            Err(error) => {
                tracing::debug!(error = %io::Error::from(error), "no kernel message");
                break;
            }
        }
    }
    (!words.is_empty()).then_some(words)
}
