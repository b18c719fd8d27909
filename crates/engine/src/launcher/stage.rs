//! The launcher's own place: a mount namespace with a small tmpfs in which everything shared by sandboxes is prepared
//! once: idmapped clones of the machine's mounts and of the store, a `/dev` to copy, hiding layers.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, StatxAttributes};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};
use rustix::thread::UnshareFlags;

use super::rights::Rights;
use super::wire::LaunchError;
use crate::sys::{self, Clone3, Cloned};
use crate::view::Hides;

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) home: PathBuf,
    pub(super) rights: Rights,
    /// The tmpfs.
    folder: PathBuf,
    /// User namespace whose map the layers get. Only root has one.
    layer_map: Option<OwnedFd>,
    /// Idmapped clones of the machine's mounts, with the mount id they were made from.
    clones: HashMap<PathBuf, (u64, PathBuf)>,
    /// How many were ever made.
    cloned: u64,
    pub(super) hiding: HashMap<Hides, PathBuf>,
    /// Which of the machine's mounts are on the file system that holds the store.
    pub(super) beside_store: HashMap<PathBuf, bool>,
}

impl Stage {
    /// Enters namespaces of our own and prepares what all sandboxes share.
    pub(super) fn set_up(home: PathBuf, rights: Rights) -> Result<Self, LaunchError> {
        enter(rights)?;
        let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", propagation)
            .map_err(|e| LaunchError::new("take the mounts out of propagation", e))?;
        let folder = home.join("stage");
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        mount("zeno", &folder, "tmpfs", flags, c"mode=0755,size=64m")
            .map_err(|e| LaunchError::new("mount a tmpfs for the stage", e))?;
        let layer_map = match rights {
            Rights::Root => Some(layer_map()?),
            Rights::User { .. } => None,
        };
        let (clones, cloned, hiding, beside_store) = Default::default();
        let stage = Self { home, rights, folder, layer_map, clones, cloned, hiding, beside_store };
        for name in ["low", "hide", "store", "empty"] {
            stage.make_folder(name)?;
        }
        super::devices::prepare(&stage.make_folder("dev")?, rights)?;
        if matches!(rights, Rights::Root) {
            stage.clone_idmapped(&stage.home, &stage.folder.join("store"))?;
        }
        Ok(stage)
    }

    /// A copy of the prepared `/dev`, attached nowhere.
    pub(super) fn copy_devices(&self) -> Result<OwnedFd, LaunchError> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        open_tree(CWD, self.folder.join("dev"), flags).map_err(|e| LaunchError::new("copy /dev", e))
    }

    /// A file of the store, attached nowhere and never written to.
    pub(super) fn given_file(&self, inside: &Path) -> Result<OwnedFd, LaunchError> {
        let failed = |what: &str| format!("{what} `{}`", inside.display());
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let file = open_tree(CWD, self.in_store(inside), flags)
            .map_err(|e| LaunchError::new(failed("take the file"), e))?;
        let quiet = libc::MOUNT_ATTR_RDONLY
            | libc::MOUNT_ATTR_NOSUID
            | libc::MOUNT_ATTR_NODEV
            | libc::MOUNT_ATTR_NOEXEC;
        sys::add_mount_flags(file.as_fd(), quiet, false)
            .map_err(|e| LaunchError::new(failed("make read-only the file"), e))?;
        Ok(file)
    }

    pub(super) fn hiding_folder(&self) -> PathBuf {
        self.folder.join("hide")
    }

    /// A path of the store, through the idmapped clone where there is one.
    pub(super) fn in_store(&self, inside: &Path) -> PathBuf {
        match self.rights {
            Rights::Root => self.folder.join("store").join(inside),
            Rights::User { .. } => self.home.join(inside),
        }
    }

    /// A path of the machine, through an idmapped clone of its mount where we can make one.
    pub(super) fn on_machine(&mut self, point: &Path, inside: &Path) -> Result<PathBuf, LaunchError> {
        if matches!(self.rights, Rights::User { .. }) {
            return Ok(point.join(inside));
        }
        let id = mount_id(point)?;
        if let Some((known, clone)) = self.clones.get(point)
            && *known == id
        {
            return Ok(clone.join(inside));
        }
        // Not named after the id, which the kernel gives to another as soon as this one is gone.
        let clone = self.make_folder(&format!("low/{}", self.cloned))?;
        self.cloned += 1;
        self.clone_idmapped(point, &clone)?;
        let path = clone.join(inside);
        self.clones.insert(point.to_owned(), (id, clone));
        Ok(path)
    }

    fn clone_idmapped(&self, from: &Path, to: &Path) -> Result<(), LaunchError> {
        let failed = |what: &str| format!("{what} `{}`", from.display());
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree =
            open_tree(CWD, from, flags).map_err(|e| LaunchError::new(failed("clone the mount of"), e))?;
        self.map_ids(tree.as_fd())
            .map_err(|e| LaunchError { action: failed("map the user ids of the file system of"), ..e })?;
        move_mount(tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|e| LaunchError::new(failed("attach the clone of"), e))
    }

    /// Gives a detached mount the layers' id mapping, where there is one.
    pub(super) fn map_ids(&self, mount: BorrowedFd<'_>) -> Result<(), LaunchError> {
        match &self.layer_map {
            Some(map) => {
                sys::idmap_mount(mount, map.as_fd()).map_err(|e| LaunchError::new("map user ids", e))
            }
            None => Ok(()),
        }
    }

    pub(super) fn make_folder(&self, name: &str) -> Result<PathBuf, LaunchError> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|e| LaunchError::new(format!("make `{}`", path.display()), e))?;
        Ok(path)
    }
}

/// Root needs a mount namespace of its own; an ordinary user also a user namespace, in which they may mount.
fn enter(rights: Rights) -> Result<(), LaunchError> {
    let flags = match rights {
        Rights::Root => UnshareFlags::NEWNS,
        Rights::User { .. } => UnshareFlags::NEWNS | UnshareFlags::NEWUSER,
    };
    // SAFETY: of the namespaces left behind nothing is held; we have one thread, and file descriptors stay shared.
    unsafe { rustix::thread::unshare_unsafe(flags) }
        .map_err(|e| LaunchError::new("make a user and mount namespace", e))?;
    if matches!(rights, Rights::User { .. }) {
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &rights.uid_map())?;
        write("/proc/self/gid_map", &rights.gid_map())?;
    }
    Ok(())
}

/// Makes a user namespace that exists only for its map.
fn layer_map() -> Result<OwnedFd, LaunchError> {
    let failed = |e: std::io::Error| LaunchError::new("make a user namespace for the layers' map", e);
    let namespaces = libc::CLONE_NEWUSER as u64;
    match sys::clone3(&Clone3 { namespaces }).map_err(failed)? {
        Cloned::Child => loop {
            // Only the namespace matters. The parent kills us as soon as it holds it.
            rustix::event::pause();
        },
        Cloned::Parent { pid, descriptor } => {
            let (shift, count, mounter) = Rights::layer_map();
            let map = format!("0 {shift} {count}\n{mounter} 0 1\n");
            let folder = format!("/proc/{}", pid.as_raw_nonzero());
            let made = write(&format!("{folder}/uid_map"), &map)
                .and_then(|()| write(&format!("{folder}/gid_map"), &map))
                .and_then(|()| fs::File::open(format!("{folder}/ns/user")).map_err(failed));
            rustix::process::pidfd_send_signal(&descriptor, rustix::process::Signal::KILL)
                .map_err(|e| failed(e.into()))?;
            Ok(made?.into())
        }
    }
}

pub(super) fn write(path: &str, text: &str) -> Result<(), LaunchError> {
    let written =
        fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| LaunchError::new(format!("write `{path}`"), e))
}

/// The mount at this very place. Cloning what is only a folder of another mount would show the wrong thing.
fn mount_id(point: &Path) -> Result<u64, LaunchError> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let stat = rustix::fs::statx(CWD, point, flags, rustix::fs::StatxFlags::MNT_ID)
        .map_err(|e| LaunchError::new(format!("look at `{}`", point.display()), e))?;
    if stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        Ok(stat.stx_mnt_id)
    } else {
        Err(LaunchError::outdated(format!(
            "clone the mount at `{}`, which is none any more",
            point.display()
        )))
    }
}
