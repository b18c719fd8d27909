//! One layer on disk, looked at by paths beneath its root.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use model::diff::Entry;
use model::exec::Text;
use model::files::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::capture::files::{self, DIRECTORY, Stat, list, open_beneath, split};
use crate::capture::layer::{Flavour, attribute};

/// An open layer. Its entries are asked for folder by folder, so the last folder is kept open.
#[derive(Debug)]
pub(crate) struct Tree {
    root: OwnedFd,
    last: RefCell<Option<(Vec<u8>, Rc<OwnedFd>)>>,
}

/// One look at an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) entry: Entry,
    /// A character device 0:0: overlayfs's word for "not here".
    pub(crate) is_whiteout: bool,
    /// The inode of a file that has further names.
    pub(crate) shared: Option<u64>,
}

/// What overlayfs noted on a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) opaque: Opaque,
    /// Stands for this folder below: absolute in the layer, or a name beside it.
    pub(crate) redirect: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Opaque {
    /// Merged with the folder below.
    #[default]
    No,
    /// Complete in itself.
    Yes,
    /// Merged, and may hold whiteouts that are marked files.
    HasMarkedWhiteouts,
}

impl Tree {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        Ok(Self { root, last: RefCell::default() })
    }

    /// Looks at an entry; `None` if it is not there. The empty path is the layer's root.
    pub(crate) fn look(&self, path: &[u8]) -> io::Result<Option<Look>> {
        let (folder, name) = split(path);
        let Some(folder) = self.folder(folder)? else { return Ok(None) };
        let name = if name.is_empty() { b"." } else { name };
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let statx = match rustix::fs::statx(&*folder, name, flags, StatxFlags::BASIC_STATS) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let raw_mode = u32::from(statx.stx_mode);
        let kind = kind(FileType::from_raw_mode(raw_mode));
        let target = match kind {
            FileKind::Symlink => match rustix::fs::readlinkat(&*folder, name, Vec::new()) {
                // It became something else just now.
                Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
                other => Some(Text(other?.into_bytes())),
            },
            FileKind::File | FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => {
                None
            }
        };
        let is_whiteout = FileType::from_raw_mode(raw_mode) == FileType::CharacterDevice
            && (statx.stx_rdev_major, statx.stx_rdev_minor) == (0, 0);
        let size = match kind {
            FileKind::File | FileKind::Symlink => statx.stx_size,
            FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => 0,
        };
        let (uid, gid) = (statx.stx_uid, statx.stx_gid);
        let entry = Entry { kind, size, mode: raw_mode & 0o7777, uid, gid, target };
        let shared = (kind == FileKind::File && statx.stx_nlink > 1).then_some(statx.stx_ino);
        Ok(Some(Look { entry, is_whiteout, shared }))
    }

    /// As the file system has it; `None` if it is not there.
    pub(super) fn stat(&self, path: &[u8]) -> io::Result<Option<Stat>> {
        let (folder, name) = split(path);
        let Some(folder) = self.folder(folder)? else { return Ok(None) };
        let name = if name.is_empty() { b"." } else { name };
        Ok(files::look(&*folder, name)?.map(|seen| seen.stat))
    }

    /// The names in a folder; none if it is gone.
    pub(crate) fn names(&self, path: &[u8]) -> io::Result<Vec<Box<[u8]>>> {
        let Some(folder) = self.folder(path)? else { return Ok(Vec::new()) };
        Ok(list(&*folder)?.into_iter().map(|(name, _)| name).collect())
    }

    /// What overlayfs noted on a folder; nothing if it is gone.
    pub(crate) fn marks(&self, path: &[u8], flavour: Flavour) -> io::Result<Marks> {
        let Some(folder) = self.folder(path)? else { return Ok(Marks::default()) };
        let opaque = match attribute(&*folder, flavour.opaque())?.as_deref() {
            Some(b"y") => Opaque::Yes,
            Some(b"x") => Opaque::HasMarkedWhiteouts,
            Some(_) | None => Opaque::No,
        };
        Ok(Marks { opaque, redirect: attribute(&*folder, flavour.redirect())? })
    }

    /// Opens a file or folder for reading its contents and attributes. Never waits for the other end of a pipe.
    pub(crate) fn open_entry(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let (folder, name) = split(path);
        let folder = self.folder(folder)?.ok_or(Errno::NOENT)?;
        let name = if name.is_empty() { b"." } else { name };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(rustix::fs::openat(folder.as_fd(), name, flags, Mode::empty())?)
    }

    /// `None`: there is no such folder.
    pub(crate) fn folder(&self, path: &[u8]) -> io::Result<Option<Rc<OwnedFd>>> {
        if let Some((last, folder)) = &*self.last.borrow()
            && last == path
        {
            return Ok(Some(folder.clone()));
        }
        let folder = match open_beneath(&self.root, path) {
            Ok(folder) => Rc::new(folder),
            Err(error) => {
                return match error.raw_os_error().map(Errno::from_raw_os_error) {
                    // Gone, a file, a link.
                    Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                    _ => Err(error),
                };
            }
        };
        self.last.replace(Some((path.to_vec(), folder.clone())));
        Ok(Some(folder))
    }
}

pub(crate) fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => FileKind::Device,
    }
}
