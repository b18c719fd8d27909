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
mod nested;
mod scratch;
mod tips;
mod transaction;

use std::path::Path;

use model::caveat::CaveatKind;
use model::exec::Text;
use model::promotion::CommitRef;
use model::{Caveat, SandboxId};

use crate::capture::Frozen;
use crate::diff::Comparison;
pub use error::CommitsError;
use git::Git;
use host::Host;
use nested::Nested;
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
    bundles: Vec<Bundle>,
}

/// What comes into one repository.
#[derive(Debug)]
struct Bundle {
    git: Git,
    host: Host,
    scratch: Scratch,
    refs: Refs,
}

/// Finds what was committed inside, in the workspace's repository and in those that lie in it. Changes nothing outside of
/// the scratch folder.
pub fn find_commits(ask: &AskCommits<'_>) -> Result<Commits, CommitsError> {
    let mut commits = Commits::default();
    let own = ask.comparison.workspace().and_then(Host::of);
    let nested = nested::find(ask.comparison, own.as_ref())?;
    if let Some(own) = own {
        commits.gather(ask, own, None)?;
    }
    for Nested { folder, host, has_objects } in nested {
        let shown = shown(ask, &folder);
        match host {
            Some(host) => commits.gather(ask, host, Some(&shown))?,
            None if has_objects => commits.caveats.push(stays(
                ask,
                &folder,
                &format!(
                    "Commits made in `{}` stay behind: here is no repository at this place.",
                    shown.display()
                ),
            )),
            None => {}
        }
    }
    Ok(commits)
}

impl Commits {
    /// What was committed in one repository, `repository` if it is not the workspace's own.
    fn gather(
        &mut self,
        ask: &AskCommits<'_>,
        host: Host,
        repository: Option<&Text>,
    ) -> Result<(), CommitsError> {
        let both = ask.comparison.both_in(&host.common).map_err(CommitsError::Compare)?;
        let tips::Found { tips, odd, tables, left } = tips::find(ask, &host, &both)?;
        if tables {
            self.caveats.push(caveat("this repository keeps its refs in tables, which zeno cannot read"));
        }
        if odd > 0 {
            let text = format!(
                "{odd} refs made inside do not come along: their names or values are none that git allows."
            );
            self.caveats.push(Caveat::new(CaveatKind::Commits, text));
        }
        if let Some((first, rest)) = left.split_first() {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            self.caveats.push(stays(ask, &host.common, &format!(
                "What `{first}`{more} stands for stays behind: only branches, tags, HEAD and stashes come along."
            )));
        }
        if tips.is_empty() {
            return Ok(());
        }
        let Some(git) = Git::find() else {
            self.caveats.push(caveat("git is not installed on this machine"));
            return Ok(());
        };
        let known = transaction::current(&git, &host.common, tips.iter().map(|tip| tip.outside.as_str()))?;
        let tips: Vec<_> = tips.into_iter().filter(|tip| known.get(&tip.outside) != Some(&tip.id)).collect();
        let Some(first) = tips.first() else { return Ok(()) };
        let haves = host.haves(&git)?;
        let scratch = Scratch::make(ask, self.bundles.len(), &git, &host, &both, &first.id)?;
        let mut told = Vec::new();
        for tip in tips {
            let commits = scratch.count(&git, &tip.id, &haves)?;
            let tips::Tip { inside, outside, id } = tip;
            told.push(CommitRef { inside, outside, tip: id, commits, repository: repository.cloned() });
        }
        scratch.pack(&git, told.iter().map(|told| told.tip.as_str()), &haves)?;
        let refs = Refs::new(&host.common, &told, &known);
        self.told.extend(told);
        self.bundles.push(Bundle { git, host, scratch, refs });
        Ok(())
    }

    /// Puts the objects into the real repositories and looks whether all is there. Nothing refers to them yet: should
    /// nothing ever, git removes them in time.
    pub(super) fn bring(&self) -> Result<(), CommitsError> {
        for Bundle { git, host, scratch, refs } in &self.bundles {
            if let Some(pack) = scratch.packed()? {
                host.take(git, pack)?;
            }
            host.is_connected(git, refs.told().iter().map(|told| told.tip.as_str()))?;
        }
        Ok(())
    }

    /// What is to be written into the real repositories.
    pub(super) fn refs(&self) -> Vec<Refs> {
        self.bundles.iter().map(|bundle| bundle.refs.clone()).collect()
    }
}

/// From the workspace, where it lies in it.
fn shown(ask: &AskCommits<'_>, folder: &Path) -> Text {
    let inside = ask.comparison.workspace().and_then(|root| folder.strip_prefix(root).ok());
    Text::from(inside.unwrap_or(folder).to_owned())
}

/// Something is not brought, and this is how to get it: as a bundle, which is data, and not as a git folder, which runs
/// whatever its settings say.
fn stays(ask: &AskCommits<'_>, folder: &Path, what: &str) -> Caveat {
    let (sandbox, place) = (ask.sandbox, folder.display());
    let text = format!(
        "{what} To get them: `zeno exec {sandbox} -- git --git-dir={place} bundle create /tmp/commits.bundle --all \
         HEAD`, then `zeno cp {sandbox}:/tmp/commits.bundle .` and fetch from that file."
    );
    Caveat::at(CaveatKind::Commits, place.to_string(), text)
}

fn caveat(why: &str) -> Caveat {
    Caveat::new(CaveatKind::Commits, format!("Commits made inside do not come along: {why}."))
}
