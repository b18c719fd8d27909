//! What can go wrong.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::{CommitsError, Left};
use crate::diff::DiffError;

#[derive(Debug, thiserror::Error)]
pub enum PromoteError {
    #[error("could not tell what the sandbox changed")]
    Compare(#[source] DiffError),
    #[error("could not open `{path}`")]
    OpenRoot { path: PathBuf, source: io::Error },
    #[error("could not look at `{path}`")]
    Look { path: PathBuf, source: io::Error },
    #[error("there are conflicts, refusals, or things that execute by themselves: nothing was changed")]
    NotClear,
    #[error("could not tell which hooks git would run by itself")]
    Called(#[source] CommitsError),
    #[error("could not bring the commits made inside")]
    Commits(#[source] CommitsError),
    #[error("nowhere on the mount of `{path}` may this user make a folder")]
    NoPlace { path: PathBuf },
    #[error("could not make the folder `{path}`")]
    MakeStage { path: PathBuf, source: io::Error },
    #[error("could not open the folder `{path}`, in which files wait to be moved")]
    OpenStage { path: PathBuf, source: io::Error },
    #[error("could not build what goes to `{path}`")]
    Build { path: PathBuf, source: io::Error },
    #[error("could not write the journal `{path}`")]
    WriteJournal { path: PathBuf, source: io::Error },
    #[error("could not read the journal `{path}`")]
    ReadJournal { path: PathBuf, source: io::Error },
    #[error("a line of the journal `{path}` means nothing to this zeno")]
    DecodeJournal { path: PathBuf, source: serde_json::Error },
    #[error("the journal `{path}` has format {format}, which is newer than this zeno")]
    NewerJournal { path: PathBuf, format: u32 },
    #[error("could not move `{path}`")]
    Move { path: PathBuf, source: io::Error },
    #[error("could not write `{path}` to disk")]
    Sync { path: PathBuf, source: io::Error },
    #[error("could not set permissions, owner, attributes and time of the folder `{path}`")]
    Dress { path: PathBuf, source: io::Error },
    #[error("could not put away what was displaced, in `{path}`")]
    Keep { path: PathBuf, source: io::Error },
    #[error("could not remove `{path}`")]
    Remove { path: PathBuf, source: io::Error },
    #[error("changed in the meantime: {}; nothing was changed", list(.paths))]
    MovedOn { paths: Vec<PathBuf> },
    #[error("what was there before is not kept any more, or was never promoted")]
    NotApplied,
    #[error("changed while everything was being taken back: {}", told(.left))]
    Left { left: Vec<Left> },
    #[error("it was given up because of {cause}, but could not be taken back: recover will try again")]
    TakeBack { cause: Box<Self>, source: Box<Self> },
}

impl PromoteError {
    /// A path could not be looked at. One that is gone, or whose folder became something else while it was looked at, has
    /// simply changed.
    pub(super) fn looked(path: PathBuf, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Self::MovedOn { paths: vec![path] },
            _ => Self::Look { path, source },
        }
    }
}

fn told(left: &[Left]) -> String {
    let words = left.iter().map(|left| {
        format!("`{}` (what was there before is in `{}`)", left.path.display(), left.kept.display())
    });
    words.collect::<Vec<_>>().join(", ")
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}
