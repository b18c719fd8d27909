//! A folder of one's own on a disk.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Rig, RigError};
use crate::files;

/// Where scratch folders lie unless the caller says otherwise: kept on disk on every Linux, and short, because
/// a Unix socket's path may have 107 bytes.
pub(crate) const PLACE: &str = "/var/tmp";

/// Removed with everything in it when dropped, or left to go with the attic it is in.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    is_in_attic: bool,
}

impl Scratch {
    pub(crate) fn new(rig: &Rig) -> Result<Self, RigError> {
        let place = &rig.place;
        let failed = |source| RigError::Scratch { place: place.to_owned(), source };
        let kind = rustix::fs::statfs(place).map_err(|errno| failed(errno.into()))?.f_type;
        if kind == TMPFS {
            return Err(RigError::NotOnDisk { place: place.to_owned() });
        }
        let folder = tempfile::Builder::new().prefix("zeno-rig-").tempdir_in(place).map_err(failed)?;
        Ok(Self { folder, is_in_attic: rig.is_attic })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_in_attic {
            self.folder.disable_cleanup(true);
            return;
        }
        // The folder's own clean-up would hide that something was left.
        if let Err(error) = files::remove_tree(self.folder.path()) {
            eprintln!("left behind: {}", crate::chain(&error));
        }
    }
}

/// TMPFS_MAGIC of linux/magic.h.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
