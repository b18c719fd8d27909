//! What can go wrong with commits.

use std::io;
use std::path::PathBuf;

use crate::diff::DiffError;

#[derive(Debug, thiserror::Error)]
pub enum CommitsError {
    #[error("could not tell what the sandbox changed in its repository")]
    Compare(#[source] DiffError),
    #[error("could not read `{path}` of the sandbox")]
    Read { path: PathBuf, source: io::Error },
    #[error("could not copy `{path}` of the sandbox")]
    Copy { path: PathBuf, source: io::Error },
    #[error("could not make a repository in `{path}`")]
    Scratch { path: PathBuf, source: io::Error },
    #[error("could not lock `{path}`, to write refs alone")]
    Turn { path: PathBuf, source: io::Error },
    #[error("could not start git to {what}")]
    Start { what: &'static str, source: io::Error },
    #[error("could not wait for git to {what}")]
    Wait { what: &'static str, source: io::Error },
    #[error("git took too long to {what}")]
    Slow { what: &'static str },
    #[error("git could not {what}: {said}")]
    Refused { what: &'static str, said: String },
    #[error("git answered something else than was asked for, to {what}")]
    Answer { what: &'static str },
}
