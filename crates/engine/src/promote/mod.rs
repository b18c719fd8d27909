//! Bringing what a sandbox changed into reality, all or nothing, and taking it back.
//!
//! First it is assessed, path by path: what the sandbox made of what it started from, and what reality made of it
//! meanwhile. The assessment changes nothing. Then it is applied: everything is built beside its target on the same mount,
//! a journal says what is about to happen, and each path is swapped by one rename, so that a crash at any moment ends, after
//! [`recover`], in the old state or in the new one. What was displaced is kept for [`undo`]. Commits come along as refs
//! ([`find_commits`]).
//!
//! Never follows a symlink, never leaves its roots, never writes into a file that somebody may have open, never throws
//! away what it displaced before it was told to ([`forget`]). Whoever calls sees to it that nothing else promotes to the
//! same paths at the same time.

mod along;
mod apply;
mod assess;
mod bare;
mod called;
mod commits;
mod error;
mod finish;
mod garb;
mod hunks;
mod journal;
mod judge;
mod lay;
mod links;
mod merge;
mod moves;
mod plan;
mod print;
mod reality;
mod recover;
mod refuse;
mod select;
mod sprout;
mod stage;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::promotion::Resolutions;

use crate::diff::Comparison;

pub use apply::apply;
pub use assess::{Assessed, assess};
pub use commits::{AskCommits, Commits, CommitsError, find_commits};
pub use error::PromoteError;
pub use finish::{Left, forget, kept};
pub use journal::{Summary, summary};
pub use recover::{Recovered, recover};
pub use undo::undo;

/// What is to be promoted.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Of everything the sandbox changed: what is promoted of it is decided here.
    pub comparison: &'a Comparison,
    /// Absolute. None: all of the workspace that git does not ignore.
    pub paths: &'a [PathBuf],
    /// Absolute; these and all below are never promoted.
    pub masked: &'a [PathBuf],
    /// When the sandbox was made, or the one whose files it began with: what it reads live and has changed since is a conflict.
    /// The time of a file written then, not of the clock, which is ahead of file times by up to a tick.
    pub since: Timestamp,
    /// Absolute. What the sandbox has there was once taken although reality had changed it: a conflict, whatever it looks
    /// like.
    pub disputed: &'a [PathBuf],
    pub resolutions: &'a Resolutions,
    /// May things be promoted that execute by themselves?
    pub allow_executes: bool,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Where a login executes files: everybody's homes ([`crate::homes`]).
    pub homes: &'a BTreeSet<PathBuf>,
    pub purpose: Purpose,
}

/// What an assessment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be applied to reality.
    Apply,
    /// To be laid over reality as a layer ([`Assessed::lay`]) that shows what would come of applying it. There nothing has
    /// to be refused, and some of what is never promoted comes along: what git ignores, and what stands in place of masked
    /// files. What was changed on the machine is not looked at.
    Preview,
    /// The same, to be worked on: git's own comes along, too.
    Refresh,
}

/// What is about to be done. Whoever observes it may stop the process; nothing is ever half done for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Something is being built beside its target.
    Staging(&'a Path),
    /// Everything is built; the journal will say what is to be moved.
    Preparing,
    Moving(&'a Path),
    /// A folder gets its permissions and time.
    Dressing(&'a Path),
    /// Objects are brought into a repository, which nothing refers to yet.
    Bringing,
    /// Refs of a repository are written, all together.
    Referring,
    /// The journal will say that it is done.
    Committing,
    /// What was displaced is put away.
    Keeping(&'a Path),
    /// What is not needed any more is removed.
    Removing(&'a Path),
    /// Back to where it was.
    Returning(&'a Path),
}

/// Is told each step before it is done.
pub type Observe<'a> = dyn FnMut(Step<'_>) + 'a;
