//! A part's own lowers as one read-only overlay, for a part that has sealed layers on top of them.
//!
//! The kernel refuses a lower that lies inside another one, and it looks at the whole way up to the root of the file
//! system. The store, and with it every sealed layer, mostly lies inside a folder of the machine that is a lower too. An
//! overlay of that folder is another file system, so that the layers do not lie inside it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::overlay::create;
use super::rights::Rights;
use super::stage::Stage;
use super::wire::LaunchError;
use crate::view::{Lower, Part, mounts};

/// Attached while the overlay on top of it is mounted, which then holds it.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) folder: PathBuf,
}

impl Stage {
    /// The lowers that are mounted as they are, and those below them as one, where that is needed.
    pub(super) fn base_of<'a>(&mut self, part: &'a Part) -> Result<(&'a [Lower], Option<Base>), LaunchError> {
        let sealed = part.lowers.iter().take_while(|lower| matches!(lower, Lower::Store(_))).count();
        let (above, own) = part.lowers.split_at(sealed);
        // A frozen workspace never holds the store, and its layers refer to the worktree below them.
        if part.inner.is_some() || above.is_empty() || !self.any_beside_store(own)? {
            return Ok((&part.lowers, None));
        }
        Ok((above, Some(self.mount_base(part, own)?)))
    }

    fn any_beside_store(&mut self, lowers: &[Lower]) -> Result<bool, LaunchError> {
        for lower in lowers {
            let Lower::Machine { mount, .. } = lower else { continue };
            let is_beside = match self.beside_store.get(mount) {
                Some(known) => *known,
                None => {
                    let shared = mounts::share_file_system(mount, &self.home);
                    let shared = shared.map_err(|e| LaunchError::new("read the list of mounts", e))?;
                    self.beside_store.insert(mount.clone(), shared);
                    shared
                }
            };
            if is_beside {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mount_base(&mut self, part: &Part, lowers: &[Lower]) -> Result<Base, LaunchError> {
        let failed = |e: Errno| {
            LaunchError::new(format!("overlay the layers below `{}`", part.mountpoint.display()), e)
        };
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
        for lower in lowers {
            let path = self.lower(lower)?;
            fsconfig_set_string(context.as_fd(), "lowerdir+", &path).map_err(failed)?;
        }
        if lowers.len() < 2 {
            // Without an upper, overlayfs wants two at least.
            let empty = self.make_folder("empty")?;
            fsconfig_set_string(context.as_fd(), "lowerdir+", &empty).map_err(failed)?;
        }
        if matches!(self.rights, Rights::User { .. }) {
            fsconfig_set_flag(context.as_fd(), "userxattr").map_err(failed)?;
        }
        create(&context).map_err(|(error, kernel)| LaunchError { kernel, ..failed(error) })?;
        let folder = self.make_folder("base")?;
        attach(&context, &folder).map_err(failed)?;
        Ok(Base { folder })
    }
}

fn attach(context: &OwnedFd, folder: &std::path::Path) -> rustix::io::Result<()> {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    move_mount(&mount, "", CWD, folder, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

impl Drop for Base {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.folder, UnmountFlags::DETACH) {
            tracing::warn!(error = %std::io::Error::from(error), "a part's own layers stay attached");
        }
    }
}
