//! A file system of limited size for what one sandbox writes.
//!
//! In memory: it needs no tool and no device, so it is the same for root and for an ordinary user, and it is charged to the
//! sandbox's own memory limit. It lives as long as the overlays that use it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chmodat, chownat, mkdirat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::stage::Stage;
use super::wire::{Launch, LaunchError};
use crate::view::Plan;

/// Attached while the overlays are mounted, and let go afterwards.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) folder: PathBuf,
}

impl Stage {
    /// Makes the file system with the upper and work folders of every part.
    pub(super) fn make_disk(&self, order: &Launch<'_>, size: u64) -> Result<Disk, LaunchError> {
        let failed = |e: rustix::io::Errno| LaunchError::new("make a file system of limited size", e);
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
        fsconfig_set_string(context.as_fd(), "size", size.to_string()).map_err(failed)?;
        fsconfig_set_string(context.as_fd(), "mode", "0755").map_err(failed)?;
        // As many files as a disk of this size would take.
        fsconfig_set_string(context.as_fd(), "nr_inodes", (size / 4096).max(1024).to_string())
            .map_err(failed)?;
        fsconfig_create(context.as_fd()).map_err(failed)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed)?;
        // Before its ids are mapped: the folders' owners are the machine's.
        fill(&mount, &order.plan, self.rights).map_err(failed)?;
        self.map_ids(mount.as_fd())?;
        let folder = self.make_folder(&Path::new("disk").join(&order.folder).to_string_lossy())?;
        move_mount(&mount, "", CWD, &folder, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(failed)?;
        Ok(Disk { folder })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.folder, UnmountFlags::DETACH) {
            tracing::warn!(error = %std::io::Error::from(error), "a disk stays attached");
        }
        if let Err(error) = std::fs::remove_dir(&self.folder) {
            tracing::warn!(%error, "a disk's mount point stays behind");
        }
    }
}

fn fill(mount: &OwnedFd, plan: &Plan, rights: super::Rights) -> rustix::io::Result<()> {
    for name in ["upper", "work"] {
        mkdirat(mount, name, Mode::from_raw_mode(0o755))?;
        for part in &plan.parts {
            mkdirat(mount, format!("{name}/{}", part.name), Mode::from_raw_mode(0o755))?;
        }
    }
    for part in &plan.parts {
        let path = format!("upper/{}", part.name);
        if matches!(rights, super::Rights::Root) {
            let (uid, gid) = (Uid::from_raw(part.top.uid), Gid::from_raw(part.top.gid));
            chownat(mount, &path, Some(uid), Some(gid), AtFlags::empty())?;
        }
        chmodat(mount, &path, Mode::from_raw_mode(part.top.mode), AtFlags::empty())?;
    }
    Ok(())
}
