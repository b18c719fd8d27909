//! What a file or folder is.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use jiff::Timestamp;
use model::files::{Destination, Entry, FileKind, FileStat};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::init::user::Names;

pub(super) fn stat(path: &Path) -> io::Result<FileStat> {
    let stat = fs::symlink_metadata(path)?;
    let kind = kind(stat.file_type());
    let target = if kind == FileKind::Symlink { Some(fs::read_link(path)?.into()) } else { None };
    Ok(FileStat {
        name: path.file_name().unwrap_or(path.as_os_str()).to_owned().into(),
        kind,
        size: stat.len(),
        mode: stat.mode() & 0o7777,
        uid: stat.uid(),
        gid: stat.gid(),
        modified: Timestamp::new(stat.mtime(), stat.mtime_nsec() as i32).unwrap_or(Timestamp::UNIX_EPOCH),
        target,
    })
}

fn kind(kind: fs::FileType) -> FileKind {
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Symlink
    } else if kind.is_fifo() {
        FileKind::Fifo
    } else if kind.is_socket() {
        FileKind::Socket
    } else {
        FileKind::Device
    }
}

/// All that is known of what is at an absolute path.
pub(super) fn look(path: &Path, names: &Names) -> io::Result<Entry> {
    let stat = stat(path)?;
    // What a link leads to has metadata of its own, and a link has none.
    let is_link = stat.kind == FileKind::Symlink;
    Ok(Entry {
        path: path.to_owned().into(),
        owner: names.user(stat.uid).as_str().into(),
        group: names.group(stat.gid).as_str().into(),
        leads_to: if is_link { destination(path) } else { None },
        metadata: if is_link { BTreeMap::new() } else { metadata(path) },
        stat,
    })
}

/// Nothing where the link leads nowhere.
fn destination(link: &Path) -> Option<Destination> {
    let path = fs::canonicalize(link).ok()?;
    let stat = fs::metadata(&path).ok()?;
    Some(Destination { path: path.into(), kind: kind(stat.file_type()), mode: stat.mode() & 0o7777 })
}

/// What was noted of a file. Nothing where it cannot be read: the rest is worth knowing all the same.
fn metadata(path: &Path) -> BTreeMap<String, String> {
    let (mut noted, mut room) = (BTreeMap::new(), MOST_METADATA);
    let mut names = vec![0; MOST_NAMES];
    let Ok(length) = rustix::fs::listxattr(path, &mut names) else { return noted };
    for name in notes(&names[..length]) {
        let key = &name.to_bytes()[PREFIX.len()..];
        let mut value = vec![0; room];
        // One that does not fit is longer than all that is told.
        let Ok(length) = rustix::fs::getxattr(path, name, &mut value) else { continue };
        let Some(rest) = room.checked_sub(key.len() + length).filter(|rest| *rest > 0) else { continue };
        room = rest;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        noted.insert(text(key), text(&value[..length]));
    }
    noted
}

/// Replaces what was noted of a file. A file system that keeps no notes keeps none.
pub(super) fn note(file: &fs::File, metadata: &BTreeMap<String, String>) -> io::Result<()> {
    match replace(file, metadata) {
        Err(Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

fn replace(file: &fs::File, metadata: &BTreeMap<String, String>) -> Result<(), Errno> {
    let mut names = vec![0; MOST_NAMES];
    let length = rustix::fs::flistxattr(file, &mut names)?;
    for name in notes(&names[..length]) {
        rustix::fs::fremovexattr(file, name)?;
    }
    for (key, value) in metadata {
        let name = [PREFIX, key.as_bytes()].concat();
        rustix::fs::fsetxattr(file, name, value.as_bytes(), XattrFlags::empty())?;
    }
    Ok(())
}

/// Those of a list of names that are ours.
fn notes(names: &[u8]) -> impl Iterator<Item = &CStr> {
    let names =
        names.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    names.filter(|name| name.to_bytes().len() > PREFIX.len() && name.to_bytes().starts_with(PREFIX))
}

const PREFIX: &[u8] = b"user.e2b.";
/// What of a file's metadata is told, in bytes: whoever is inside can note more than fits into a message.
const MOST_METADATA: usize = 64 << 10;
/// The kernel's own limit for a list of names.
const MOST_NAMES: usize = 64 << 10;
