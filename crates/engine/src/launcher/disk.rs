//! A file system of limited size for what one sandbox writes: on the block device that the daemon attached, or in memory.
//!
//! A tmpfs needs no tool and no device, so an ordinary user can have it too; it is charged to the sandbox's own memory
//! limit. Either lives as long as the overlays that use it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chmodat, chownat, mkdirat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::rights::Rights;
use super::stage::Stage;
use super::wire::{Launch, LaunchError};
use crate::view::Plan;

/// Attached while the overlays are mounted, and let go afterwards.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) folder: PathBuf,
}

impl Stage {
    /// Mounts the file system with the upper and work folders of every part.
    pub(super) fn make_disk(&self, order: &Launch<'_>, size: u64) -> Result<Disk, LaunchError> {
        let plan = &order.plan;
        let failed = |e: Errno| LaunchError::new("mount a file system of limited size", e);
        let mount = match &order.disk {
            Some(device) => on_device(device),
            None => in_memory(size),
        };
        let mount = mount.map_err(failed)?;
        // What overlayfs left of the last run: without this a volatile upper is not mounted again.
        crate::remove::tree(&crate::through(mount.as_fd(), "work"))
            .map_err(|e| LaunchError::new("clear the sandbox's disk", e))?;
        // Before its ids are mapped: the folders' owners are the machine's.
        fill(&mount, plan, self.rights).map_err(|e| LaunchError::new("fill the sandbox's disk", e))?;
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

fn in_memory(size: u64) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "size", size.to_string())?;
    fsconfig_set_string(context.as_fd(), "mode", "0755")?;
    // As many files as a disk of this size would take.
    fsconfig_set_string(context.as_fd(), "nr_inodes", (size / 4096).max(1024).to_string())?;
    mounted(&context)
}

fn on_device(device: &Path) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "source", device)?;
    // Its unmount would otherwise bring the whole image to the real disk, even when it is about to be removed.
    fsconfig_set_flag(context.as_fd(), "nobarrier")?;
    // The image is sparse, so its inode tables are zero already and stay unallocated.
    fsconfig_set_flag(context.as_fd(), "noinit_itable")?;
    fsconfig_set_string(context.as_fd(), "errors", "remount-ro")?;
    mounted(&context)
}

fn mounted(context: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Makes what is not there yet. An upper that is, is kept as it is.
fn fill(mount: &OwnedFd, plan: &Plan, rights: Rights) -> rustix::io::Result<()> {
    for name in ["upper", "work"] {
        make_folder(mount, name)?;
    }
    for part in &plan.parts {
        make_folder(mount, &format!("work/{}", part.name))?;
        let path = format!("upper/{}", part.name);
        if make_folder(mount, &path)? == Made::Now {
            if matches!(rights, Rights::Root) {
                let (uid, gid) = (Uid::from_raw(part.top.uid), Gid::from_raw(part.top.gid));
                chownat(mount, &path, Some(uid), Some(gid), AtFlags::empty())?;
            }
            chmodat(mount, &path, Mode::from_raw_mode(part.top.mode), AtFlags::empty())?;
        }
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

fn make_folder(mount: &OwnedFd, path: &str) -> rustix::io::Result<Made> {
    match mkdirat(mount, path, Mode::from_raw_mode(0o755)) {
        Ok(()) => Ok(Made::Now),
        Err(Errno::EXIST) => Ok(Made::Before),
        Err(error) => Err(error),
    }
}
