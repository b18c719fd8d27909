//! Commits made inside, brought into the real repository as `refs/zeno/<sandbox>/...`.
//!
//! The sandbox's git folder is hostile: its settings, hooks, alternates, replacements and links are whatever somebody inside
//! wanted them to be. So no git ever runs in it. Two things are taken out of the sealed layers, each by its strict name and
//! never through a symlink: where branches, tags and HEAD stand, which a few lines here can read, and the files that hold
//! objects. These go into a bare repository of our own making, and from that comes one pack of what the real repository
//! lacks. The real one takes it as it would take a stranger's: every object is named anew by its bytes, checked, and looked
//! at for whether all it needs is there. Only then are the refs written, in one transaction.
//!
//! Packing inside a throwaway sandbox would do as well, but the git in there is the sandbox's too, and may say or withhold
//! what it likes; this way what is brought is what was sealed. What git has to parse outside is no more than what any fetch
//! makes it parse: of packs not even the index is believed.
//!
//! Never runs a hook, never reads the sandbox's settings, never touches a ref outside `refs/zeno/`, nor the index, the
//! settings or the files of the real repository.

mod error;
pub(super) mod git;
mod host;
mod names;
mod scratch;
mod tips;
mod transaction;

use std::path::Path;

use model::caveat::CaveatKind;
use model::promotion::CommitRef;
use model::{Caveat, SandboxId};

use crate::capture::Frozen;
use crate::diff::Comparison;
pub use error::CommitsError;
use git::Git;
use host::Host;
use scratch::Scratch;
pub(super) use transaction::Refs;

/// Whose commits, and where there is room to work.
#[derive(Clone, Copy, Debug)]
pub struct AskCommits<'a> {
    /// Of everything the sandbox changed.
    pub comparison: &'a Comparison,
    pub sandbox: SandboxId,
    /// What it started from: the real repository may have lost some of these objects since.
    pub frozen: Option<&'a Frozen>,
    /// A folder that is nobody else's. It is made, and removed when the answer is dropped.
    pub scratch: &'a Path,
}

/// The commits of a sandbox, ready to be brought.
#[derive(Debug, Default)]
pub struct Commits {
    pub told: Vec<CommitRef>,
    /// Why some, or all, do not come.
    pub caveats: Vec<Caveat>,
    bundle: Option<Bundle>,
}

#[derive(Debug)]
struct Bundle {
    git: Git,
    host: Host,
    scratch: Scratch,
    refs: Refs,
}

/// Finds what was committed inside. Changes nothing outside of the scratch folder.
pub fn find_commits(ask: &AskCommits<'_>) -> Result<Commits, CommitsError> {
    let Some(host) = ask.comparison.workspace().and_then(Host::of) else { return Ok(Commits::default()) };
    let both = ask.comparison.both_in(&host.common).map_err(CommitsError::Compare)?;
    let tips::Found { tips, odd, tables } = tips::find(ask, &host, &both)?;
    let mut commits = Commits::default();
    if tables {
        commits.caveats.push(caveat("this repository keeps its refs in tables, which zeno cannot read"));
    }
    if odd > 0 {
        let text = format!(
            "{odd} refs made inside do not come along: their names or values are none that git allows."
        );
        commits.caveats.push(Caveat::new(CaveatKind::Commits, text));
    }
    if tips.is_empty() {
        return Ok(commits);
    }
    let Some(git) = Git::find() else {
        commits.caveats.push(caveat("git is not installed on this machine"));
        return Ok(commits);
    };
    let known = transaction::current(&git, &host.common, tips.iter().map(|tip| tip.outside.as_str()))?;
    let tips: Vec<_> = tips.into_iter().filter(|tip| known.get(&tip.outside) != Some(&tip.id)).collect();
    if tips.is_empty() {
        return Ok(commits);
    }
    let haves = host.haves(&git)?;
    let scratch = Scratch::make(ask, &git, &host, &both, &tips[0].id)?;
    for tip in tips {
        let counted = scratch.count(&git, &tip.id, &haves)?;
        let tips::Tip { inside, outside, id } = tip;
        commits.told.push(CommitRef { inside, outside, tip: id, commits: counted });
    }
    scratch.pack(&git, commits.told.iter().map(|told| told.tip.as_str()), &haves)?;
    let refs = Refs::new(&host.common, &commits.told, &known);
    commits.bundle = Some(Bundle { git, host, scratch, refs });
    Ok(commits)
}

impl Commits {
    /// Puts the objects into the real repository and looks whether all is there. Nothing refers to them yet: should
    /// nothing ever, git removes them in time.
    pub(super) fn bring(&self) -> Result<(), CommitsError> {
        let Some(Bundle { git, host, scratch, .. }) = &self.bundle else { return Ok(()) };
        if let Some(pack) = scratch.packed()? {
            host.take(git, pack)?;
        }
        host.is_connected(git, self.told.iter().map(|told| told.tip.as_str()))
    }

    /// What is to be written into the real repository, if anything.
    pub(super) fn refs(&self) -> Option<Refs> {
        self.bundle.as_ref().map(|bundle| bundle.refs.clone())
    }
}

fn caveat(why: &str) -> Caveat {
    Caveat::new(CaveatKind::Commits, format!("Commits made inside do not come along: {why}."))
}
