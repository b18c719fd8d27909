//! What is not promoted and belongs to a sandbox's state all the same: it goes along where the sandbox goes.
//!
//! Build folders and the like are the sandbox's own affair, so its version is taken. Git's files belong together: those of
//! the side that moved HEAD, or the branch it stands on, are taken, and where both did, somebody has to say which is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::files::FileKind;
use model::promotion::{ConflictReason, Refusal, RefusalReason};

use super::PromoteError;
use super::assess::{Fate, Gathered, LOST, Outcome, Stay, is_lost};
use super::judge::{Judgement, Sides};
use super::reality::{Now, Real, Spot};
use super::select::is_masked;
use crate::capture::git::{common_dir, git_dir};
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
    fn is_conflict(&self) -> bool {
        matches!(self.judgement, Judgement::Conflict(_) | Judgement::Merge(_))
    }

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
        let packed = self.packed(&along)?;
        let mut judged: Vec<Along<'a>> = Vec::new();
        for (path, both) in along {
            let failed = |source| PromoteError::looked(path.clone(), source);
            if both.area == Area::Git && self.is_only_packed(&path, &both, &packed).map_err(failed)? {
                continue;
            }
            judged.extend(self.judged(&path, both, new_folders).map_err(failed)?);
        }
        let mut git = self.git(&judged)?;
        // Where branches are goes first: the rest of git's files follow it.
        judged.sort_by_key(|one| !one.is_ref());
        for one in judged {
            let failed = |source| PromoteError::looked(one.path.clone(), source);
            let fate = self.fate(&one, &git).map_err(failed)?;
            if fate == KEPT && git.heads.contains(&one.path) {
                git.fate = KEPT;
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
            if is_lost(version)? {
                self.left_behind(path, LOST);
                return Ok(None);
            }
        } else if both.area == Area::Git && is_kept_by_git(path, &both) {
            return Ok(None);
        }
        let spot = self.reality.spot(path).expect("every absolute path is beneath `/`");
        let now = match self.reality.look(&spot)? {
            // Of what is masked nobody looks at the real one.
            Now::Present(_) if is_masked(path, self.ask) => Now::Absent,
            now => now,
        };
        let comes_with_folder = path.parent().is_some_and(|parent| new_folders.contains(parent));
        let (reality, since) = (self.reality, self.ask.since);
        let sides = Sides { both: &both, now: &now, reality, spot: &spot, since, comes_with_folder };
        let judgement = sides.judge()?;
        let is_changed = judgement != Judgement::Nothing;
        Ok(is_changed.then(|| Along { path: path.to_owned(), spot, both, now, judgement }))
    }

    fn fate(&mut self, one: &Along<'a>, git: &Git) -> io::Result<Fate> {
        let reason = match &one.judgement {
            Judgement::Nothing | Judgement::Same => return Ok(Fate::Stay(Stay::Same)),
            Judgement::Take => return Ok(Fate::Ours),
            Judgement::Conflict(ConflictReason::FolderReplaced) => {
                self.left_behind(&one.path, "Where its folder was there is something else now.");
                return Ok(KEPT);
            }
            // Its folder comes back with it, as it does with a file that git does not know.
            Judgement::Conflict(ConflictReason::FolderGone) => return Ok(Fate::Ours),
            Judgement::Merge(blend) if one.both.area != Area::Git => return Ok(Fate::Blend(blend.clone())),
            Judgement::Merge(_) => ConflictReason::SameLines,
            Judgement::Conflict(reason) => *reason,
        };
        if one.both.area != Area::Git {
            self.disputed.push(one.path.clone());
            return Ok(Fate::Ours);
        }
        // Neither is it a conflict where only one of them moved it.
        let is_settled = git.heads.contains(&one.path) && !git.both_moved;
        if !one.is_ref() || is_settled {
            return Ok(git.fate.clone());
        }
        let Along { path, spot, both, now, .. } = one;
        let (reality, since) = (self.reality, self.ask.since);
        let sides = Sides { both, now, reality, spot, since, comes_with_folder: false };
        let told = self.told(path);
        self.conflict(&told, &sides, reason)
    }

    /// Which side moved HEAD, or the branch it stands on: git's files are those of that side.
    fn git(&mut self, judged: &[Along<'a>]) -> Result<Git, PromoteError> {
        let nobody = Git { fate: KEPT, heads: Vec::new(), both_moved: false };
        let Some(git_dir) = self.ask.comparison.workspace().and_then(git_dir) else { return Ok(nobody) };
        let head = git_dir.join("HEAD");
        let failed = |source| PromoteError::looked(head.clone(), source);
        let Some(before) = self.before(&head).map_err(failed)? else { return Ok(nobody) };
        let mut heads = vec![head.clone()];
        heads.extend(branch(&before).map(|name| common_dir(&git_dir).join(name)));
        let ours = judged.iter().any(|one| heads.contains(&one.path));
        let mut theirs = false;
        let packed = self.real(&common_dir(&git_dir).join(PACKED)).map_err(failed)?.unwrap_or_default();
        for path in &heads {
            let failed = |source| PromoteError::looked(path.clone(), source);
            let (was, is) = (self.before(path).map_err(failed)?, self.real(path).map_err(failed)?);
            theirs |= was != is && !was.is_some_and(|was| is.is_none() && is_packed(path, &was, &packed));
        }
        let is_told = judged.iter().any(|one| heads.contains(&one.path) && one.is_conflict());
        let mut fate = if ours { Fate::Ours } else { KEPT };
        if ours && theirs && !is_told {
            fate = self.branches(&head).map_err(failed)?;
        }
        Ok(Git { fate, heads, both_moved: ours && theirs })
    }

    /// Both sides went elsewhere, and no file of git's tells.
    fn branches(&mut self, head: &Path) -> io::Result<Fate> {
        let spot = self.reality.spot(head).expect("every absolute path is beneath `/`");
        let now = self.reality.look(&spot)?;
        let before = self.ask.comparison.before(head)?;
        let both = Both { area: Area::Git, after: before.clone(), before };
        let (reality, since) = (self.reality, self.ask.since);
        let sides = Sides { both: &both, now: &now, reality, spot: &spot, since, comes_with_folder: false };
        let told = self.told(head);
        self.conflict(&told, &sides, ConflictReason::Branches)
    }

    /// What the sandbox noted of refs that have no file of their own any more.
    fn packed(&self, along: &BTreeMap<PathBuf, Both<'a>>) -> Result<Vec<u8>, PromoteError> {
        let mut bytes = Vec::new();
        for (path, both) in along.iter().filter(|(path, _)| path.ends_with(PACKED)) {
            let Some(version) = &both.after else { continue };
            let contents = version.contents().and_then(|contents| contents.reader().read_to_end(&mut bytes));
            contents.map_err(|source| PromoteError::looked(path.clone(), source))?;
        }
        Ok(bytes)
    }

    /// Did the sandbox only note elsewhere what a ref stands for?
    fn is_only_packed(&self, path: &Path, both: &Both<'a>, packed: &[u8]) -> io::Result<bool> {
        if both.after.is_some() || !is_ref(path) {
            return Ok(false);
        }
        Ok(self.before(path)?.is_some_and(|was| is_packed(path, &was, packed)))
    }

    /// What a file held when the sandbox was made.
    fn before(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some(version) = self.ask.comparison.before(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        version.contents()?.reader().read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// What the real file holds; `None` if there is none.
    fn real(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let spot = self.reality.spot(path).expect("every absolute path is beneath `/`");
        let is_file = |real: &Real| real.entry.kind == FileKind::File;
        if !self.reality.look(&spot)?.real().is_some_and(is_file) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.reality.open_file(&spot)?.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

/// What becomes of git's files where both sides changed them.
struct Git {
    fate: Fate,
    /// HEAD, and the branch that it stood on.
    heads: Vec<PathBuf>,
    both_moved: bool,
}

/// Is a ref noted with this value?
fn is_packed(path: &Path, value: &[u8], packed: &[u8]) -> bool {
    let name = inside_git(path).join(&b'/');
    let line = [value.trim_ascii_end(), b" ", &name].concat();
    packed.split(|byte| *byte == b'\n').any(|noted| noted == line)
}

/// The branch that a HEAD names.
fn branch(head: &[u8]) -> Option<PathBuf> {
    let name = head.strip_prefix(b"ref: ")?.trim_ascii_end();
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

/// What is gone inside and stays all the same: objects, which others may need and nobody minds, and folders, in which there
/// may be more than was seen inside.
fn is_kept_by_git(path: &Path, both: &Both<'_>) -> bool {
    let is_folder = both.before.as_ref().is_some_and(|version| version.entry.kind == FileKind::Directory);
    is_folder || inside_git(path).first().is_some_and(|name| *name == b"objects")
}

/// Does a file of git's say where a branch, a tag or HEAD is?
fn is_ref(path: &Path) -> bool {
    let inside = inside_git(path);
    match inside.iter().find(|name| [&b"logs"[..], b"refs", b"reftable"].contains(name)) {
        Some(folder) => **folder != *b"logs",
        None => inside.last().is_some_and(|name| [&b"HEAD"[..], b"packed-refs"].contains(name)),
    }
}

/// The names of a path below its git folder.
fn inside_git(path: &Path) -> Vec<&[u8]> {
    let names: Vec<&[u8]> = path.iter().map(OsStr::as_encoded_bytes).collect();
    let start = names.iter().rposition(|name| name.ends_with(b".git")).map_or(0, |at| at + 1);
    names[start..].to_vec()
}

/// Where git notes refs that have no file of their own.
const PACKED: &str = "packed-refs";
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
