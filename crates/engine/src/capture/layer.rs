//! One layer of a frozen copy on disk: `<layer>/.zeno-frozen/...`, to be mounted as an overlay's lower directory.
//!
//! The first layer holds everything; those above it hold differences. A directory is either opaque (complete in
//! itself) or a lead: it carries its metadata and what changed below, and merges with the one underneath.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, XattrFlags};
use rustix::io::Errno;

use super::copy::Scratch;
use super::files::{DIRECTORY, join, make_writable, open_beneath, remove_tree, split};
use super::{FROZEN_ROOT, Live};

/// Whose extended attributes the overlay obeys: root's, or those of any user (`userxattr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Trusted,
    User,
}

impl Flavour {
    /// Root of a user namespace may not set root's attributes, so being root is not what decides.
    pub(super) fn of(live: Live) -> Self {
        match live {
            Live::Redirect => Self::Trusted,
            Live::Stubs => Self::User,
            Live::Copy if rustix::process::geteuid().is_root() => Self::Trusted,
            Live::Copy => Self::User,
        }
    }

    pub(crate) fn opaque(self) -> &'static CStr {
        match self {
            Self::Trusted => c"trusted.overlay.opaque",
            Self::User => c"user.overlay.opaque",
        }
    }

    pub(crate) fn redirect(self) -> &'static CStr {
        match self {
            Self::Trusted => c"trusted.overlay.redirect",
            Self::User => c"user.overlay.redirect",
        }
    }

    pub(crate) fn metacopy(self) -> &'static CStr {
        match self {
            Self::Trusted => c"trusted.overlay.metacopy",
            Self::User => c"user.overlay.metacopy",
        }
    }

    pub(crate) fn whiteout(self) -> &'static CStr {
        match self {
            Self::Trusted => c"trusted.overlay.whiteout",
            Self::User => c"user.overlay.whiteout",
        }
    }
}

/// What a directory in a layer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Opaque,
    Lead,
    /// Stands for this path beneath the lowest layer.
    Redirect(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Layer {
    root: OwnedFd,
    flavour: Flavour,
}

impl Layer {
    /// Makes an empty layer at `path`.
    pub(super) fn create(path: &Path, kind: &Kind, flavour: Flavour) -> io::Result<Self> {
        std::fs::create_dir(path)?;
        let layer = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        make_dir(&layer, FROZEN_ROOT.as_bytes(), kind, flavour)?;
        Self::open(path, flavour)
    }

    pub(super) fn open(path: &Path, flavour: Flavour) -> io::Result<Self> {
        let root = rustix::fs::open(path.join(FROZEN_ROOT), DIRECTORY, Mode::empty())?;
        make_writable(&root)?;
        Ok(Self { root, flavour })
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Opens a directory of the layer for writing, if it is there.
    pub(super) fn find_dir(&self, path: &[u8]) -> io::Result<Option<OwnedFd>> {
        match open_beneath(&self.root, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => {
                let dir = other?;
                make_writable(&dir)?;
                Ok(Some(dir))
            }
        }
    }

    /// Opens a directory of the layer for writing. Leads that are missing are made, and are to be dressed later.
    pub(super) fn open_dir(&self, path: &[u8], scratch: &Scratch) -> io::Result<OwnedFd> {
        if let Some(dir) = self.find_dir(path)? {
            return Ok(dir);
        }
        // Up to the first lead that is there, then down again.
        let mut missing = Vec::new();
        let mut at = path;
        let mut dir = loop {
            let (parent, name) = split(at);
            missing.push(name);
            at = parent;
            match self.find_dir(at)? {
                Some(dir) => break dir,
                None if at.is_empty() => return Err(Errno::NOENT.into()),
                None => {}
            }
        };
        for name in missing.into_iter().rev() {
            dir = self.place_dir(&dir, name, &Kind::Lead, scratch)?;
        }
        Ok(dir)
    }

    /// Makes `name` absent, whatever this layer or those below have there.
    pub(super) fn remove(&self, dir: impl AsFd, name: &[u8]) -> io::Result<()> {
        remove_tree(&dir, name)?;
        if kind_of(&dir, self.flavour)? == Kind::Lead {
            rustix::fs::mknodat(&dir, name, FileType::CharacterDevice, Mode::empty(), 0)?;
        }
        Ok(())
    }

    /// Puts a new directory at `name`, over whatever is there.
    pub(super) fn place_dir(
        &self,
        dir: impl AsFd,
        name: &[u8],
        kind: &Kind,
        scratch: &Scratch,
    ) -> io::Result<OwnedFd> {
        scratch.place(dir, name, |scratch, temporary| make_dir(scratch, temporary, kind, self.flavour))
    }

    /// All paths that stand in the layer: what it changes, compared with those below, and the ways there.
    pub(super) fn changes(&self) -> io::Result<Vec<Vec<u8>>> {
        self.walk(|_| Ok(true)).map(|walk| walk.paths)
    }

    /// The folders that merely lead to changes.
    pub(super) fn leads(&self) -> io::Result<Vec<Vec<u8>>> {
        self.walk(|dir| Ok(kind_of(dir, self.flavour)? == Kind::Lead)).map(|walk| walk.folders)
    }

    /// The folders for which `enter` holds, and all paths in them.
    fn walk(&self, enter: impl Fn(&OwnedFd) -> io::Result<bool>) -> io::Result<Walk> {
        let mut walk = Walk::default();
        let mut pending = vec![Vec::new()];
        while let Some(path) = pending.pop() {
            let dir = open_beneath(&self.root, &path)?;
            if !enter(&dir)? {
                continue;
            }
            for (name, file_type) in super::files::list(&dir)? {
                let child = join(&path, &name);
                if file_type == FileType::Directory {
                    pending.push(child.clone());
                }
                walk.paths.push(child);
            }
            walk.folders.push(path);
        }
        Ok(walk)
    }
}

#[derive(Debug, Default)]
struct Walk {
    folders: Vec<Vec<u8>>,
    paths: Vec<Vec<u8>>,
}

pub(super) fn kind_of(dir: impl AsFd, flavour: Flavour) -> io::Result<Kind> {
    if let Some(redirect) = attribute(&dir, flavour.redirect())? {
        return Ok(Kind::Redirect(redirect));
    }
    Ok(match attribute(&dir, flavour.opaque())? {
        Some(_) => Kind::Opaque,
        None => Kind::Lead,
    })
}

pub(super) fn make_dir(dir: impl AsFd, name: &[u8], kind: &Kind, flavour: Flavour) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
    let made = open_beneath(&dir, name)?;
    match kind {
        Kind::Lead => {}
        Kind::Opaque => rustix::fs::fsetxattr(&made, flavour.opaque(), b"y", XattrFlags::empty())?,
        Kind::Redirect(path) => {
            rustix::fs::fsetxattr(&made, flavour.redirect(), path, XattrFlags::empty())?;
        }
    }
    Ok(made)
}

pub(crate) fn attribute(file: impl AsFd, name: &CStr) -> io::Result<Option<Vec<u8>>> {
    let length = match rustix::fs::fgetxattr_query(&file, name) {
        Err(Errno::NODATA | Errno::NOTSUP) => return Ok(None),
        other => other?,
    };
    let mut value = vec![0; length];
    let length = rustix::fs::fgetxattr(&file, name, &mut value)?;
    value.truncate(length);
    Ok(Some(value))
}
