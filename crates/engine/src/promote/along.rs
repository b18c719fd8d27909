//! What is not promoted and belongs to a sandbox's state all the same: it goes along where the sandbox goes.
//!
//! Build folders and the like are the sandbox's own affair, so its version is taken. Git's files belong together: those of
//! the side that moved a branch are taken, and where both did, somebody has to say which is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use model::files::FileKind;
use model::promotion::{ConflictReason, Refusal, RefusalReason};

use super::PromoteError;
use super::assess::{Fate, Gathered, Outcome, Stay};
use super::judge::{Judgement, Sides};
use super::reality::{Now, Spot};
use super::select::is_masked;
use crate::diff::{Area, Both};

/// One path that goes along, and what reality has there.
struct Along<'a> {
    path: PathBuf,
    spot: Spot,
    both: Both<'a>,
    now: Now,
    judgement: Judgement,
}

impl Along<'_> {
    fn is_ref(&self) -> bool {
        self.both.area == Area::Git && is_ref(&self.path)
    }
}

impl<'a> Gathered<'_, 'a> {
    pub(super) fn along(
        &mut self,
        along: BTreeMap<PathBuf, Both<'a>>,
        new_folders: &BTreeSet<PathBuf>,
    ) -> Result<(), PromoteError> {
        let mut judged: Vec<Along<'a>> = Vec::new();
        for (path, both) in along {
            let failed = |source| PromoteError::Look { path: path.clone(), source };
            judged.extend(self.judged(&path, both, new_folders).map_err(failed)?);
        }
        // Where branches are goes first: the rest of git's files follow it.
        judged.sort_by_key(|one| !one.is_ref());
        let mut git = if judged.first().is_some_and(Along::is_ref) { Fate::Ours } else { KEPT };
        for one in judged {
            let failed = |source| PromoteError::Look { path: one.path.clone(), source };
            let fate = self.fate(&one, &git).map_err(failed)?;
            if one.is_ref() && fate == KEPT {
                git = KEPT;
            }
            let Along { path, spot, both, now, .. } = one;
            self.outcomes.insert(path, Outcome { spot, both, now, fate, is_along: true });
        }
        Ok(())
    }

    /// `None`: the sandbox left it as it was, or it cannot be carried.
    fn judged(
        &mut self,
        path: &Path,
        both: Both<'a>,
        new_folders: &BTreeSet<PathBuf>,
    ) -> io::Result<Option<Along<'a>>> {
        if let Some(version) = &both.after {
            if self.refusal(version)?.is_some() {
                let refusal = Refusal { path: self.told(path), reason: RefusalReason::Unreadable };
                self.report.refused.push(refusal);
                return Ok(None);
            }
            let is_endpoint = match version.entry.kind {
                FileKind::File | FileKind::Directory | FileKind::Symlink => false,
                FileKind::Fifo | FileKind::Socket | FileKind::Device => true,
            };
            // Nobody is at the other end of one that was only moved.
            if is_endpoint && version.sealed()?.is_none() {
                return Ok(None);
            }
        }
        let spot = self.reality.spot(path).expect("every absolute path is beneath `/`");
        // Of what is masked nobody looks at the real one.
        let now = if is_masked(path, self.ask) { Now::Absent } else { self.reality.look(&spot)? };
        let comes_with_folder = path.parent().is_some_and(|parent| new_folders.contains(parent));
        let (reality, since) = (self.reality, self.ask.since);
        let sides = Sides { both: &both, now: &now, reality, spot: &spot, since, comes_with_folder };
        let judgement = sides.judge()?;
        let is_changed = judgement != Judgement::Nothing;
        Ok(is_changed.then(|| Along { path: path.to_owned(), spot, both, now, judgement }))
    }

    /// `git` is what becomes of git's files in a conflict.
    fn fate(&mut self, one: &Along<'a>, git: &Fate) -> io::Result<Fate> {
        let reason = match &one.judgement {
            Judgement::Nothing | Judgement::Same => return Ok(Fate::Stay(Stay::Same)),
            Judgement::Take => return Ok(Fate::Ours),
            // There is no place for it any more.
            Judgement::Conflict(ConflictReason::FolderGone | ConflictReason::FolderReplaced) => {
                return Ok(KEPT);
            }
            Judgement::Merge(blend) if one.both.area != Area::Git => return Ok(Fate::Blend(blend.clone())),
            Judgement::Merge(_) => ConflictReason::SameLines,
            Judgement::Conflict(reason) => *reason,
        };
        if one.both.area != Area::Git {
            return Ok(Fate::Ours);
        }
        if !one.is_ref() {
            return Ok(git.clone());
        }
        let Along { path, spot, both, now, .. } = one;
        let (reality, since) = (self.reality, self.ask.since);
        let sides = Sides { both, now, reality, spot, since, comes_with_folder: false };
        let told = self.told(path);
        self.conflict(&told, &sides, reason)
    }
}

/// Does a file of git's say where a branch, a tag or HEAD is?
fn is_ref(path: &Path) -> bool {
    let names: Vec<&[u8]> = path.iter().map(std::ffi::OsStr::as_encoded_bytes).collect();
    let start = names.iter().rposition(|name| name.ends_with(b".git")).map_or(0, |at| at + 1);
    let inside = &names[start..];
    match inside.iter().find(|name| [&b"logs"[..], b"refs", b"reftable"].contains(name)) {
        Some(folder) => **folder != *b"logs",
        None => inside.last().is_some_and(|name| [&b"HEAD"[..], b"packed-refs"].contains(name)),
    }
}

const KEPT: Fate = Fate::Stay(Stay::Kept);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_where_a_branch_is() {
        let refs = [
            "/w/.git/HEAD",
            "/w/.git/refs/heads/logs",
            "/logs/w/.git/packed-refs",
            "/w/repo.git/worktrees/b/HEAD",
            "/w/.git/refs/stash",
        ];
        let others =
            ["/w/.git/index", "/w/.git/logs/HEAD", "/w/.git/logs/refs/heads/main", "/w/.git/ORIG_HEAD"];
        for path in refs {
            assert!(is_ref(Path::new(path)), "{path}");
        }
        for path in others {
            assert!(!is_ref(Path::new(path)), "{path}");
        }
    }
}
