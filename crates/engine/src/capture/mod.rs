//! The frozen copy of a workspace: directories on disk that somebody else mounts as an overlay's lowers.
//!
//! A workspace is captured once and kept current by copying what changed. What a sandbox was given never changes
//! under it: as long as anybody holds a layer, changes go into a new one on top.
//!
//! Never mounts anything, never follows a symlink, never writes into a workspace, never leaves it.

mod absorb;
mod captures;
pub(crate) mod copy;
mod count;
mod error;
mod extra;
pub(crate) mod files;
mod fit;
pub(crate) mod git;
mod index;
mod journal;
mod judge;
pub(crate) mod layer;
pub(crate) mod metadata;
mod pass;
mod pins;
mod place;
mod pool;
mod report;
mod root;
mod secrets;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use std::path::PathBuf;

use jiff::Timestamp;
use model::Caveat;
use model::sandbox::Masked;
use serde::{Deserialize, Serialize};

pub use captures::Captures;
pub use error::CaptureError;
pub use git::worktree_around;
pub use pins::Holder;

/// How folders that git ignores are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Live {
    /// Read live, through `trusted.overlay.redirect` into the worktree as the lowest layer. For root.
    Redirect,
    /// Files are read live, through metacopy stubs over the worktree as a data-only layer (`userxattr`, Linux 6.16).
    Stubs,
    /// Copied like everything else.
    Copy,
}

/// A pinned state of a workspace. Goes into the sandbox's plan, and back in through [`Captures::adopt`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Frozen {
    pub workspace: PathBuf,
    pub generation: u64,
    pub taken: Timestamp,
    /// The workspace, and the git directory it belongs to if that lies elsewhere.
    pub parts: Vec<FrozenPart>,
    pub caveats: Vec<Caveat>,
    pub masked: Vec<Masked>,
}

/// One overlay to mount. Only its sub-folder [`FROZEN_ROOT`] is to be shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrozenPart {
    pub mountpoint: PathBuf,
    /// Absolute, newest first; each contains [`FROZEN_ROOT`].
    pub layers: Vec<PathBuf>,
    /// The worktree itself: the lowest lower ([`Live::Redirect`]), or data-only ([`Live::Stubs`]).
    pub live: Option<PathBuf>,
}

/// How far a capture has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
    /// Of a first capture: how many files there are, or about so many, once that is known.
    pub total: Option<u64>,
}

/// What a freeze says while it is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The workspace has changed. Whoever holds the last state without need should [`Captures::let_go`] now: what nobody
    /// holds is changed in place.
    Changing,
    Copying(Progress),
}

/// The folder of a layer that holds the frozen tree: an overlay's root is always merged, its folders need not be.
pub const FROZEN_ROOT: &str = ".zeno-frozen";
