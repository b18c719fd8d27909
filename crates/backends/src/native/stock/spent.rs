//! The folder of a sandbox that wrote nothing.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use engine::view::Part;

use crate::native::Running;
use crate::native::store::{Folder, Stored};

/// A folder that waits to be used again, and what it was used for.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) folder: Folder,
    pub(super) stored: Stored,
    /// Whoever had it, if they may not be gone yet.
    pub(super) ending: Option<Running>,
}

/// What nobody can write to a sandbox's folder without changing. Every change to a folder, to what is in it, to its
/// permissions, attributes or flags, sets the time of its last change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untouched {
    /// Of each upper folder: inode, seconds and nanoseconds.
    uppers: Vec<(u64, i64, i64)>,
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
            let upper = folder.upper().join(&part.name);
            let stat = fs::symlink_metadata(&upper)?;
            // On older kernels that time is coarse: what is in the folder counts too.
            if fs::read_dir(&upper)?.next().is_some() || has_attributes(&upper)? {
                return written();
            }
            uppers.push((stat.ino(), stat.ctime(), stat.ctime_nsec()));
        }
        Ok(Self { uppers })
    }
}

fn has_attributes(path: &std::path::Path) -> io::Result<bool> {
    let mut none: [u8; 0] = [];
    Ok(rustix::fs::listxattr(path, &mut none)? > 0)
}
