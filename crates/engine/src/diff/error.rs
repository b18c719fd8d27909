//! What can go wrong.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    #[error("could not open the layer `{path}`")]
    Layer { path: PathBuf, source: io::Error },
    #[error("could not read what is hidden from the sandbox")]
    Hidden(#[source] serde_json::Error),
    #[error("could not compare `{path}`")]
    Compare { path: PathBuf, source: io::Error },
    #[error("could not hand on the patch")]
    HandOn(#[source] io::Error),
    #[error("could not read `{path}`")]
    Read { path: PathBuf, source: io::Error },
}
