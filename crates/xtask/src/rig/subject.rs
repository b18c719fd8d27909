//! Which zeno is looked at, and where.

use std::path::PathBuf;

use super::{RigError, interrupt, scratch};
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
}

impl Subject {
    /// Builds what has to be built. From here on Ctrl-C does not end this process, but its work.
    pub(crate) fn rig(&self) -> Result<Rig, RigError> {
        let zeno = match &self.zeno {
            Some(path) => {
                path.canonicalize().map_err(|source| RigError::NoZeno { path: path.clone(), source })?
            }
            None => program::zeno(&["--release"])?,
        };
        interrupt::watch()?;
        Ok(Rig { zeno, place: self.scratch.clone() })
    }
}
