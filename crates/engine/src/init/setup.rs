//! Building the sandbox's root, from inside its namespaces: straight down, every step named.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;

use model::net::Net;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use super::Birth;
use crate::launcher::{LaunchError, Rights};
use crate::sys;
use crate::view::{Bone, BoneKind, Root};

/// World-readable windows on the host's kernel, shown empty.
const MASKED: [&str; 8] = [
    "kcore",
    "keys",
    "latency_stats",
    "timer_list",
    "sched_debug",
    "interrupts",
    "sysrq-trigger",
    "kallsyms",
];
const MASKED_FOLDERS: [&str; 2] = ["scsi", "acpi"];

pub(super) fn build(birth: &Birth) -> Result<(), LaunchError> {
    let plan = &birth.plan;
    // Needs no ids yet, so it is done while the launcher writes them and mounts.
    if plan.net == Net::None {
        sys::loopback_up().map_err(|e| LaunchError::new("bring up loopback", e))?;
    }
    rustix::system::sethostname(plan.hostname.as_bytes())
        .map_err(|e| LaunchError::new("set the host name", e))?;
    let (places, mut mounts) = wait_for_launcher(birth)?;
    become_root(birth.rights)?;
    let devices =
        mounts.pop().ok_or_else(|| LaunchError::new("find the devices' mount", rustix::io::Errno::INVAL))?;

    let mut parts = places.into_iter().zip(mounts);
    let root = match &plan.root {
        Root::Skeleton(bones) => skeleton(bones)?,
        Root::FirstPart => match parts.next() {
            Some((_, mount)) => mount,
            None => return Err(LaunchError::new("find the root's mount", rustix::io::Errno::INVAL)),
        },
    };
    // On top of the old root: no path of the host has to be walked, which our user may not be allowed to.
    attach(&root, CWD.as_fd(), Path::new("/"), "/")?;
    for (place, mount) in parts {
        let point = &plan.parts[place].mountpoint;
        let target = beneath(&root, point)?;
        attach(&mount, target.as_fd(), Path::new(""), &point.to_string_lossy())?;
    }
    attach_devices(&devices, &root)?;
    proc(&root, &devices)?;
    sys_folder(plan.net, &root)?;
    if matches!(plan.root, Root::Skeleton(_)) {
        let read_only = libc::MOUNT_ATTR_RDONLY;
        sys::add_mount_flags(root.as_fd(), read_only, false)
            .map_err(|e| LaunchError::new("make / read-only", e))?;
    }
    enter(&root)
}

/// Waits for the launcher to map our ids and hand over the plan's mounts: their places in the plan, and the mounts.
fn wait_for_launcher(birth: &Birth) -> Result<(Vec<usize>, Vec<OwnedFd>), LaunchError> {
    let failed = |e: std::io::Error| LaunchError::new("hear from the launcher", e);
    let packet = sys::receive(birth.launcher.as_fd(), 64 << 10).map_err(failed)?;
    let packet = packet.ok_or_else(|| failed(std::io::ErrorKind::UnexpectedEof.into()))?;
    let places: Vec<usize> = serde_json::from_slice(&packet.bytes).map_err(|e| failed(e.into()))?;
    Ok((places, packet.descriptors))
}

/// Until now our user was the launcher's, which has no name in here.
fn become_root(rights: Rights) -> Result<(), LaunchError> {
    use rustix::process::{Gid, Uid};
    if matches!(rights, Rights::Root) {
        let failed = |e| LaunchError::new("become the sandbox's root", e);
        rustix::thread::set_thread_groups(&[]).map_err(failed)?;
        rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(failed)?;
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(failed)?;
    }
    Ok(())
}

/// A small tmpfs with the plan's folders, links and files.
fn skeleton(bones: &[Bone]) -> Result<OwnedFd, LaunchError> {
    let failed = |e: std::io::Error| LaunchError::new("make the skeleton of /", e);
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = fresh("tmpfs", &[("mode", "0755"), ("size", "16m")], quiet)?;
    let point = crate::through(root.as_fd(), "");
    for bone in bones {
        let path = point.join(bone.path.strip_prefix("/").unwrap_or(&bone.path));
        match &bone.kind {
            BoneKind::Folder { mode } => {
                fs::DirBuilder::new().mode(*mode | 0o700).create(&path).map_err(failed)?
            }
            BoneKind::Link { target } => symlink(target, &path).map_err(failed)?,
            BoneKind::File { mode, bytes } => {
                fs::write(&path, bytes).map_err(failed)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).map_err(failed)?;
            }
        }
    }
    // The modes come last: a folder that shows no permission could not be filled.
    for bone in bones.iter().rev() {
        if let BoneKind::Folder { mode } = bone.kind {
            let path = point.join(bone.path.strip_prefix("/").unwrap_or(&bone.path));
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        }
    }
    Ok(root)
}

/// A copy of the prepared `/dev`, with its own terminals and shared memory.
fn attach_devices(devices: &OwnedFd, root: &OwnedFd) -> Result<(), LaunchError> {
    attach(devices, beneath(root, Path::new("/dev"))?.as_fd(), Path::new(""), "/dev")?;
    let private = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    // The machine has some thousand terminals for everyone together.
    let terminals: &[_] = &[("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620"), ("max", "256")];
    let terminals = fresh("devpts", terminals, private)?;
    attach(&terminals, beneath(root, Path::new("/dev/pts"))?.as_fd(), Path::new(""), "/dev/pts")?;
    let private = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let memory = fresh("tmpfs", &[("mode", "1777"), ("size", "50%")], private)?;
    attach(&memory, beneath(root, Path::new("/dev/shm"))?.as_fd(), Path::new(""), "/dev/shm")?;
    sys::add_mount_flags(devices.as_fd(), libc::MOUNT_ATTR_RDONLY, false)
        .map_err(|e| LaunchError::new("make /dev read-only", e))
}

fn proc(root: &OwnedFd, devices: &OwnedFd) -> Result<(), LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("mask a part of /proc", e);
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = fresh("proc", &[], quiet)?;
    attach(&proc, beneath(root, Path::new("/proc"))?.as_fd(), Path::new(""), "/proc")?;
    // Both ends are descriptors of mounts we made this moment: no name inside the sandbox is followed.
    for name in MASKED {
        let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = match rustix::fs::openat(&proc, name, path, Mode::empty()) {
            Ok(target) => target,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(failed(error)),
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let null = open_tree(devices, "null", flags).map_err(failed)?;
        attach(&null, target.as_fd(), Path::new(""), name)?;
    }
    MASKED_FOLDERS.iter().try_for_each(|name| cover(&proc, name, quiet))
}

/// Shows a folder of a fresh mount empty, if it is there.
fn cover(mount: &OwnedFd, name: &str, quiet: MountAttrFlags) -> Result<(), LaunchError> {
    let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(target) = rustix::fs::openat(mount, name, path, Mode::empty()) else { return Ok(()) };
    let empty = fresh("tmpfs", &[("size", "4k")], quiet | MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    attach(&empty, target.as_fd(), Path::new(""), name)
}

/// A fresh, read-only `/sys`. With the host's network the kernel refuses a fresh one, so it stays empty.
fn sys_folder(net: Net, root: &OwnedFd) -> Result<(), LaunchError> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = match net {
        Net::None => fresh("sysfs", &[], quiet | MountAttrFlags::MOUNT_ATTR_RDONLY)?,
        Net::Host => fresh("tmpfs", &[("size", "4k")], quiet | MountAttrFlags::MOUNT_ATTR_RDONLY)?,
    };
    attach(&mount, beneath(root, Path::new("/sys"))?.as_fd(), Path::new(""), "/sys")?;
    // The machine's serial numbers, tables and memory map.
    cover(&mount, "firmware", quiet)
}

/// Makes the new root the root and lets go of the old one.
fn enter(root: &OwnedFd) -> Result<(), LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("enter the new root", e);
    rustix::process::fchdir(root).map_err(failed)?;
    rustix::process::pivot_root(".", ".").map_err(failed)?;
    // The old root now lies on top of the new one, at the same place.
    unmount(".", UnmountFlags::DETACH).map_err(failed)?;
    rustix::process::chdir("/").map_err(failed)
}

fn fresh(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> Result<OwnedFd, LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new(format!("mount a fresh {kind}"), e);
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
    for (key, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(context.as_fd(), *key).map_err(failed)?;
        } else {
            fsconfig_set_string(context.as_fd(), *key, *value).map_err(failed)?;
        }
    }
    fsconfig_create(context.as_fd()).map_err(failed)?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed)
}

/// Attaches a detached mount at `path` from `folder`, or at `folder` itself if the path is empty.
fn attach(
    mount: &OwnedFd,
    folder: rustix::fd::BorrowedFd<'_>,
    path: &Path,
    name: &str,
) -> Result<(), LaunchError> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if path.as_os_str().is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    move_mount(mount, "", folder, path, flags).map_err(|e| LaunchError::new(format!("attach `{name}`"), e))
}

/// Opens a folder of the new root without ever leaving it.
fn beneath(root: &OwnedFd, path: &Path) -> Result<OwnedFd, LaunchError> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, inside, flags, Mode::empty(), resolve)
        .map_err(|e| LaunchError::new(format!("find the mount point `{}`", path.display()), e))
}
