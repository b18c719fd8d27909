//! Which zeno is looked at, and where.

use std::path::PathBuf;

use super::{RigError, Scratch, interrupt, scratch};
use crate::program;

/// As it was asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Subject {
    /// Use this binary instead of a release build of this checkout
    #[arg(long, value_name = "PATH")]
    zeno: Option<PathBuf>,
    /// Work in this folder, on a disk
    #[arg(long, value_name = "FOLDER", default_value = scratch::PLACE)]
    scratch: PathBuf,
}

/// What every row and every trial needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Rig {
    pub(crate) zeno: PathBuf,
    pub(crate) place: PathBuf,
    /// Whoever works in `place` leaves everything there; it goes as a whole when all is over.
    pub(crate) is_attic: bool,
}

impl Rig {
    /// The same in a folder from which nothing is removed until it is. Without a journal, ext4 looks at every inode that was
    /// freed in the last minutes before it takes a new one, so that whoever makes a file next pays for what was removed before.
    pub(crate) fn in_attic(&self, attic: &Scratch) -> Self {
        Self { zeno: self.zeno.clone(), place: attic.path().to_owned(), is_attic: true }
    }
}

impl Subject {
    /// Builds what has to be built. From here on Ctrl-C does not end this process, but its work.
    pub(crate) fn rig(&self) -> Result<Rig, RigError> {
        let zeno = match &self.zeno {
            Some(path) => {
                path.canonicalize().map_err(|source| RigError::NoZeno { path: path.clone(), source })?
            }
            None => program::zeno(&["--package", "cli", "--release"])?,
        };
        interrupt::watch()?;
        Ok(Rig { zeno, place: self.scratch.clone(), is_attic: false })
    }
}
