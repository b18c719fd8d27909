//! Building the sandbox's root, from inside its namespaces: straight down, every step named.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::net::Wiring;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, chmodat, mkdirat, openat, openat2, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use super::Birth;
use crate::gateway::Gateway;
use crate::launcher::{LaunchError, Rights};
use crate::sys;
use crate::view::{Bone, BoneKind, Plan, Root};

/// Windows on the host's kernel that everyone may read, shown empty. Those that only the host's root may read
/// (kcore, timer_list, sysrq-trigger and the like) need no mask: nobody in here is that.
const MASKED: [&str; 5] = ["keys", "latency_stats", "sched_debug", "interrupts", "kallsyms"];

/// What every sandbox of this kind needs, whatever its plan: made before the plan is known.
#[derive(Debug)]
pub(super) struct Prepared {
    devices: OwnedFd,
    terminals: OwnedFd,
    memory: OwnedFd,
    proc: OwnedFd,
    sys: OwnedFd,
    /// Covers what is not to be seen of `sys`.
    empty: OwnedFd,
    gateway: Option<Gateway>,
}

/// Prepares what does not depend on a plan, and leaves the host's mounts behind.
pub(super) fn prepare(birth: &Birth) -> Result<Prepared, LaunchError> {
    // Needs no ids yet, so it is done while the launcher writes them.
    if birth.net != Wiring::Host {
        sys::loopback_up().map_err(|e| LaunchError::new("bring up loopback", e))?;
    }
    let gateway = match birth.net {
        Wiring::Gateway => Some(Gateway::wire()?),
        Wiring::None | Wiring::Host => None,
    };
    let devices = wait_for_ids(birth)?;
    become_root(birth.rights)?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let private = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let read_only = quiet | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let prepared = Prepared {
        devices,
        // The machine has some thousand terminals for everyone together, hence a limit.
        terminals: fresh(
            "devpts",
            &[("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620"), ("max", "256")],
            private,
        )?,
        memory: fresh(
            "tmpfs",
            &[("mode", "1777"), ("size", "50%")],
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
        )?,
        proc: fresh("proc", &[], quiet)?,
        // With the host's network the kernel refuses a fresh one, so it stays empty.
        sys: match birth.net {
            Wiring::None | Wiring::Gateway => fresh("sysfs", &[], read_only)?,
            Wiring::Host => fresh("tmpfs", &[("size", "4k")], read_only)?,
        },
        empty: fresh("tmpfs", &[("size", "4k")], read_only)?,
        gateway,
    };
    leave_host(&fresh("tmpfs", &[("size", "4k")], read_only)?)?;
    Ok(prepared)
}

/// Builds the plan's root and enters it. Hands back what init goes on to serve.
pub(super) fn build(
    prepared: Prepared,
    plan: &Plan,
    parts: Vec<(usize, OwnedFd)>,
    covers: impl Iterator<Item = (PathBuf, OwnedFd)>,
) -> Result<Option<Gateway>, LaunchError> {
    rustix::system::sethostname(plan.hostname.as_bytes())
        .map_err(|e| LaunchError::new("set the host name", e))?;
    let mut parts = parts.into_iter();
    let root = match &plan.root {
        Root::Skeleton(bones) => skeleton(bones)?,
        Root::FirstPart => match parts.next() {
            Some((_, mount)) => mount,
            None => return Err(LaunchError::new("find the root's mount", rustix::io::Errno::INVAL)),
        },
    };
    attach(&root, CWD.as_fd(), Path::new("/"), "/")?;
    for (place, mount) in parts {
        let point = &plan.parts[place].mountpoint;
        attach_beneath(&mount, &root, point)?;
    }
    for (path, file) in covers {
        cover(&file, &root, &path)?;
    }
    let Prepared { devices, terminals, memory, proc, sys, empty, gateway } = prepared;
    attach_beneath(&devices, &root, Path::new("/dev"))?;
    attach_beneath(&terminals, &root, Path::new("/dev/pts"))?;
    attach_beneath(&memory, &root, Path::new("/dev/shm"))?;
    sys::add_mount_flags(devices.as_fd(), libc::MOUNT_ATTR_RDONLY, false)
        .map_err(|e| LaunchError::new("make /dev read-only", e))?;
    attach_beneath(&proc, &root, Path::new("/proc"))?;
    mask(&proc, &devices)?;
    attach_beneath(&sys, &root, Path::new("/sys"))?;
    cover_firmware(&sys, &empty)?;
    if matches!(plan.root, Root::Skeleton(_)) {
        let read_only = libc::MOUNT_ATTR_RDONLY;
        sys::add_mount_flags(root.as_fd(), read_only, false)
            .map_err(|e| LaunchError::new("make / read-only", e))?;
    }
    enter(&root)?;
    Ok(gateway)
}

/// Waits for the launcher to map our ids; the devices come with the news.
fn wait_for_ids(birth: &Birth) -> Result<OwnedFd, LaunchError> {
    let failed = |e: std::io::Error| LaunchError::new("hear from the launcher", e);
    let packet = sys::receive(birth.launcher.as_fd(), 4096).map_err(failed)?;
    let device = packet.and_then(|packet| packet.descriptors.into_iter().next());
    device.ok_or_else(|| failed(std::io::ErrorKind::UnexpectedEof.into()))
}

/// Makes an empty, read-only folder the root and lets go of all the host's mounts. What is built later lies on top of
/// it, so that whoever found a way below the sandbox's root would find nothing.
fn leave_host(empty: &OwnedFd) -> Result<(), LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("leave the host's root", e);
    // On top of the old root: no path of the host has to be walked, which our user may not be allowed to.
    attach(empty, CWD.as_fd(), Path::new("/"), "/")?;
    rustix::process::fchdir(empty).map_err(failed)?;
    rustix::process::pivot_root(".", ".").map_err(failed)?;
    // The old root now lies on top of the new one, at the same place.
    unmount(".", UnmountFlags::DETACH).map_err(failed)?;
    rustix::process::chdir("/").map_err(failed)
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
    let failed = |e: rustix::io::Errno| LaunchError::new("make the skeleton of /", e);
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = fresh("tmpfs", &[("mode", "0755"), ("size", "16m")], quiet)?;
    let inside = |bone: &Bone| bone.path.strip_prefix("/").unwrap_or(&bone.path).to_owned();
    for bone in bones {
        let path = inside(bone);
        match &bone.kind {
            BoneKind::Folder { mode } => {
                mkdirat(&root, path, Mode::from_raw_mode(mode | 0o700)).map_err(failed)?
            }
            BoneKind::Link { target } => symlinkat(target, &root, path).map_err(failed)?,
            BoneKind::File { mode, bytes } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let file = openat(&root, path, flags, Mode::from_raw_mode(*mode)).map_err(failed)?;
                // A tmpfs takes a small file whole.
                rustix::io::write(&file, bytes).map_err(failed)?;
            }
        }
    }
    // The modes come last: a folder that shows no permission could not be filled.
    for bone in bones.iter().rev() {
        if let BoneKind::Folder { mode } = bone.kind {
            chmodat(&root, inside(bone), Mode::from_raw_mode(mode), AtFlags::empty()).map_err(failed)?;
        }
    }
    Ok(root)
}

/// Hides windows on the host's kernel. Both ends are descriptors of mounts we made ourselves: no name inside the
/// sandbox is followed.
fn mask(proc: &OwnedFd, devices: &OwnedFd) -> Result<(), LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("mask a part of /proc", e);
    for name in MASKED {
        let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = match openat(proc, name, path, Mode::empty()) {
            Ok(target) => target,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(failed(error)),
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let null = open_tree(devices, "null", flags).map_err(failed)?;
        attach(&null, target.as_fd(), Path::new(""), name)?;
    }
    Ok(())
}

/// Hides the machine's serial numbers, tables and memory map.
fn cover_firmware(sys: &OwnedFd, empty: &OwnedFd) -> Result<(), LaunchError> {
    let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(sys, "firmware", path, Mode::empty()) {
        Ok(target) => attach(empty, target.as_fd(), Path::new(""), "/sys/firmware"),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(LaunchError::new("mask a part of /sys", error)),
    }
}

/// Makes the new root, which lies on top of the empty one, this process's root.
fn enter(root: &OwnedFd) -> Result<(), LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("enter the new root", e);
    rustix::process::fchdir(root).map_err(failed)?;
    rustix::process::chroot(".").map_err(failed)?;
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

fn attach_beneath(mount: &OwnedFd, root: &OwnedFd, point: &Path) -> Result<(), LaunchError> {
    attach(mount, beneath(root, point)?.as_fd(), Path::new(""), &point.to_string_lossy())
}

/// Puts a file over another. One that the sandbox has removed, or made a link of, stays as it is.
fn cover(file: &OwnedFd, root: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
    use rustix::io::Errno;
    match open_beneath(root, path, OFlags::empty()) {
        Ok(target) => attach(file, target.as_fd(), Path::new(""), &path.to_string_lossy()),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(LaunchError::new(format!("find `{}`", path.display()), error)),
    }
}

/// Opens a folder of the new root without ever leaving it.
fn beneath(root: &OwnedFd, path: &Path) -> Result<OwnedFd, LaunchError> {
    open_beneath(root, path, OFlags::DIRECTORY)
        .map_err(|e| LaunchError::new(format!("find the mount point `{}`", path.display()), e))
}

fn open_beneath(root: &OwnedFd, path: &Path, kind: OFlags) -> rustix::io::Result<OwnedFd> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, inside, flags, Mode::empty(), resolve)
}
