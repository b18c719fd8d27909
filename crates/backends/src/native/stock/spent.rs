//! The folder of a sandbox that wrote nothing.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use engine::view::Part;

use super::ends_within;
use crate::native::store::{FIRST_TURN, Folder, Stored};

/// A folder that waits to be used again, and what it was used for.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) folder: Folder,
    pub(super) stored: Stored,
    /// Whoever had it, if they may not be gone yet.
    pub(super) ending: Option<OwnedFd>,
}

impl Spent {
    /// Is whoever had it gone? Overlayfs does not mount a folder twice, and to wait for the end of many at once takes
    /// longer than to make a folder.
    pub(super) fn is_free(&self) -> bool {
        self.ending.as_ref().is_none_or(|process| ends_within(process, Duration::ZERO))
    }
}

/// What nobody can write to a sandbox's folder without changing. Every change to a folder, to what is in it, to its
/// permissions, attributes or flags, sets the time of its last change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untouched {
    uppers: Vec<Upper>,
}

#[derive(Debug, PartialEq, Eq)]
struct Upper {
    inode: u64,
    /// Seconds and nanoseconds. On older kernels this is coarse, hence the rest.
    changed: (i64, i64),
    /// Names. Overlayfs itself may set some.
    attributes: Vec<u8>,
}

impl Untouched {
    /// Fails if something was written.
    pub(super) fn look(folder: &Folder, parts: &[Part]) -> io::Result<Self> {
        let written = || Err(io::ErrorKind::DirectoryNotEmpty.into());
        if fs::metadata(folder.log())?.len() > 0 {
            return written();
        }
        let mut uppers = Vec::new();
        for part in parts {
            let upper = folder.upper(FIRST_TURN).join(&part.name);
            let stat = fs::symlink_metadata(&upper)?;
            if fs::read_dir(&upper)?.next().is_some() {
                return written();
            }
            let changed = (stat.ctime(), stat.ctime_nsec());
            uppers.push(Upper { inode: stat.ino(), changed, attributes: attributes(&upper)? });
        }
        Ok(Self { uppers })
    }
}

/// A list that is longer than ours is of nobody we would reuse the folder of.
fn attributes(path: &Path) -> io::Result<Vec<u8>> {
    let mut names = vec![0; 1024];
    let length = rustix::fs::listxattr(path, &mut names)?;
    names.truncate(length);
    Ok(names)
}
