//! Does an overlay mount here, the way this user's sandboxes need it?

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
};
use serde::{Deserialize, Serialize};

use super::facts::Rights;
use super::userns::Maps;
use super::{child, sys};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlay {
    Works,
    Fails { errno: i32 },
}

/// Can owners be mapped per mount? Only root may, so only root needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idmap {
    pub state_dir: bool,
    pub root: bool,
}

pub(super) struct Answers {
    pub(super) overlay: Overlay,
    pub(super) idmap: Idmap,
    pub(super) data_only_stubs: bool,
}

pub(super) fn probe(state_dir: &Path, rights: Rights, namespace: Option<&OwnedFd>) -> Answers {
    let mut answers =
        Answers { overlay: Overlay::Fails { errno: 0 }, idmap: Idmap::default(), data_only_stubs: false };
    let can_map = |path: &CStr| namespace.is_some_and(|namespace| mapped_tree(path, namespace).is_ok());
    answers.idmap.root = rights == Rights::Root && can_map(c"/");
    let scratch = match Scratch::make(state_dir) {
        Ok(scratch) => scratch,
        Err(error) => {
            answers.overlay = Overlay::Fails { errno: error.raw_os_error().unwrap_or(libc::EIO) };
            return answers;
        }
    };
    let result = match (rights, namespace) {
        (Rights::Root, Some(namespace)) => {
            answers.idmap.state_dir =
                std::ffi::CString::new(scratch.0.as_os_str().as_bytes()).is_ok_and(|path| can_map(&path));
            scratch.attempt(|| as_root(namespace))
        }
        (Rights::Root, None) => Err(Errno::PERM),
        (Rights::User { .. }, _) => {
            let maps = Maps::own();
            scratch.attempt(|| as_user(&maps))
        }
    };
    answers.overlay = match result {
        Ok(()) => Overlay::Works,
        Err(errno) => Overlay::Fails { errno: errno.raw_os_error() },
    };
    let maps = Maps::own();
    answers.data_only_stubs = scratch.attempt(|| stubs(&maps)).is_ok();
    answers
}

/// A few directories on the state directory's file system, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn make(state_dir: &Path) -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero();
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let scratch = Self(state_dir.join(format!("probe-{pid}-{thread}")));
        for directory in ["lower", "layers/upper", "layers/work", "stubs", "data"] {
            fs::create_dir_all(scratch.0.join(directory))?;
        }
        fs::write(scratch.0.join("data/file"), CONTENT)?;
        let stub = fs::File::create(scratch.0.join("stubs/file"))?;
        stub.set_len(CONTENT.len() as u64)?;
        for (name, value) in [("user.overlay.metacopy", ""), ("user.overlay.redirect", "/file")] {
            // A file system without user attributes cannot have stubs; the probe says so by failing later.
            match rustix::fs::fsetxattr(&stub, name, value.as_bytes(), XattrFlags::empty()) {
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(scratch)
    }

    /// Runs in a child whose working directory this is, so that no path has to be escaped.
    fn attempt(&self, attempt: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let directory =
            rustix::fs::open(&self.0, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        child::attempt(|| {
            rustix::process::fchdir(&directory)?;
            attempt()
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The kernel makes these without any permission, so an ordinary user could not look into them.
        let inner = ["layers/work/work", "layers/work/work/incompat", "layers/work/work/incompat/volatile"];
        let opened = inner.iter().try_for_each(|inner| {
            match fs::set_permissions(self.0.join(inner), fs::Permissions::from_mode(0o700)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            }
        });
        if let Err(error) = opened.and_then(|()| fs::remove_dir_all(&self.0)) {
            tracing::debug!(%error, path = %self.0.display(), "the probe's scratch directory stays behind");
        }
    }
}

fn as_root(namespace: &OwnedFd) -> Result<(), Errno> {
    sys::unshare(libc::CLONE_NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", private)?;
    for path in [c"lower", c"layers"] {
        let tree = mapped_tree(path, namespace)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(tree.as_fd(), c"", CWD, path, flags)?;
    }
    overlay_with_upper(|overlay| rustix::mount::fsconfig_set_string(overlay, c"redirect_dir", c"on"))
}

fn as_user(maps: &Maps) -> Result<(), Errno> {
    maps.enter(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    overlay_with_upper(|overlay| rustix::mount::fsconfig_set_flag(overlay, c"userxattr"))
}

/// With all that the launcher asks of an overlay: one option less than the kernel knows, and no sandbox starts.
fn overlay_with_upper(flavour: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>) -> Result<(), Errno> {
    let settings = [
        (c"lowerdir+", c"lower"),
        (c"lowerdir+", c"stubs"),
        (c"upperdir", c"layers/upper"),
        (c"workdir", c"layers/work"),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = mount_overlay(&settings, attributes, |overlay| {
        rustix::mount::fsconfig_set_flag(overlay, c"volatile")?;
        flavour(overlay)
    })?;
    // A mounter whose own id is not mapped gets an overlay that silently became read-only.
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&mount, c"new", flags, Mode::from_raw_mode(0o600)).map(|_| ())
}

fn stubs(maps: &Maps) -> Result<(), Errno> {
    maps.enter(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    let settings = [(c"lowerdir+", c"stubs"), (c"datadir+", c"data")];
    let mount = mount_overlay(&settings, MountAttrFlags::empty(), |overlay| {
        rustix::mount::fsconfig_set_flag(overlay, c"userxattr")
    })?;
    let file = rustix::fs::openat(&mount, c"file", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut found = [0; CONTENT.len()];
    let length = rustix::io::read(&file, &mut found)?;
    if found[..length] == *CONTENT { Ok(()) } else { Err(Errno::NODATA) }
}

fn mount_overlay(
    settings: &[(&CStr, &CStr)],
    attributes: MountAttrFlags,
    flavour: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<OwnedFd, Errno> {
    let overlay = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    flavour(overlay.as_fd())?;
    for (key, value) in settings {
        rustix::mount::fsconfig_set_string(overlay.as_fd(), *key, *value)?;
    }
    rustix::mount::fsconfig_create(overlay.as_fd())?;
    rustix::mount::fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn mapped_tree(path: &CStr, namespace: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, path, flags)?;
    sys::idmap(tree.as_fd(), namespace)?;
    Ok(tree)
}

const CONTENT: &[u8] = b"seen through a stub";
