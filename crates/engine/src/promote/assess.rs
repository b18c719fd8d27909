//! What a promotion would do, and what stands in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::Caveat;
use model::caveat::CaveatKind;
use model::exec::Text;
use model::files::FileKind;
use model::promotion::{
    Action, Assessment, Conflict, ConflictReason, Did, Executes, ExecutesList, OnConflict, Planned, Refusal,
    RefusalReason, Side,
};

use super::bare::Bare;
use super::called::Called;
use super::commits::Commits;
use super::hunks::Told;
use super::judge::{Blend, Judgement, Sides};
use super::links::Names;
use super::plan::{self, Work};
use super::reality::{Now, Reality, Spot};
use super::select::{Selection, is_git, is_masked, select};
use super::{Ask, PromoteError, Purpose, refuse};
use crate::capture::files::Stat;
use crate::diff::{Area, Both, Comparison, Version};
use crate::launcher::Rights;

/// An assessment, and all that is needed to apply it.
#[derive(Debug)]
pub struct Assessed<'a> {
    pub report: Assessment,
    /// Where the sandbox's version was taken without asking although reality had changed it.
    pub disputed: Vec<PathBuf>,
    pub(super) reality: Reality,
    pub(super) work: Work<'a>,
    pub(super) commits: Commits,
}

impl Assessed<'_> {
    /// With these commits, which come before the files.
    #[must_use]
    pub fn with_commits(mut self, commits: Commits) -> Self {
        self.report.commits.clone_from(&commits.told);
        self.report.caveats.extend(commits.caveats.iter().cloned());
        self.commits = commits;
        self
    }

    /// The files that neither side has seen as they would become: absolute path and contents.
    pub fn merged(&self) -> impl Iterator<Item = (PathBuf, &[u8])> {
        self.work.merged().map(|(spot, bytes)| (self.reality.absolute(&spot), bytes))
    }
}

/// One path, and what becomes of it.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) spot: Spot,
    pub(super) both: Both<'a>,
    pub(super) now: Now,
    pub(super) fate: Fate,
    /// Not promoted, and therefore not told.
    pub(super) is_along: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Reality stays as it is.
    Stay(Stay),
    /// Reality gets the sandbox's version, or what the sandbox deleted goes.
    Ours,
    Blend(Blend),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// It is like this already.
    Same,
    /// The user said so.
    Kept,
    /// Nobody said what to do.
    Undecided,
}

impl Fate {
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Stay(_))
    }
}

/// Assesses. Changes nothing.
pub fn assess<'a>(ask: &Ask<'a>) -> Result<Assessed<'a>, PromoteError> {
    let comparison = ask.comparison;
    let roots = comparison.workspace().map(Path::to_owned).into_iter().chain([PathBuf::from("/")]);
    let reality = Reality::open(&roots.collect::<Vec<_>>())?;
    let both = comparison.both().map_err(PromoteError::Compare)?;
    let Selection { chosen, along, left_out, foreign } = select(both, ask);
    let root = comparison.workspace().map(|root| Text::from(root.to_owned()));
    let rights = Rights::of_this_process();
    let caveats = foreign.iter().map(|folder| not_brought(folder)).collect();
    let mut gathered = Gathered {
        ask,
        reality: &reality,
        rights,
        executes: ExecutesList::built_in(),
        called: called(ask, chosen.keys())?,
        bare: bare(ask, &reality, &chosen)?,
        report: Assessment { root, left_out, caveats, ..Assessment::default() },
        outcomes: BTreeMap::new(),
        disputed: Vec::new(),
        lines_left: LINES,
    };
    let new_folders: BTreeSet<PathBuf> = chosen
        .iter()
        .chain(&along)
        .filter(|(_, both)| becomes_folder(both))
        .map(|(path, _)| path.clone())
        .collect();
    for (path, both) in chosen {
        let spot = reality.spot(&path).expect("every absolute path is beneath `/`");
        let comes_with_folder = path.parent().is_some_and(|parent| new_folders.contains(parent));
        let done = gathered.path(&path, spot, both, comes_with_folder);
        done.map_err(|source| PromoteError::looked(path, source))?;
    }
    gathered.along(along, &new_folders)?;
    gathered.unread();
    gathered.more_in_folders()?;
    let Gathered { mut report, mut outcomes, disputed, .. } = gathered;
    plan::settle(&mut outcomes);
    let anchors = Names { ask, reality: &reality, rights }.keep_together(&mut outcomes, &mut report)?;
    let promoted = outcomes.iter().filter(|(_, outcome)| !outcome.is_along);
    tell(&mut report, promoted.map(|(path, outcome)| (told(comparison, path), outcome)));
    let work = if report.is_clear() {
        plan::plan(comparison, &reality, rights, ask.since, outcomes, anchors)?
    } else {
        Work::default()
    };
    Ok(Assessed { report, disputed, reality, work, commits: Commits::default() })
}

/// What git would run of these, where that has to be known.
fn called<'b>(ask: &Ask<'_>, chosen: impl Iterator<Item = &'b PathBuf>) -> Result<Called, PromoteError> {
    if ask.purpose != Purpose::Apply || ask.allow_executes {
        return Ok(Called::default());
    }
    Called::among(chosen, ask.comparison.workspace(), ask.home).map_err(PromoteError::Called)
}

/// What git would take for a repository, where that has to be known.
fn bare(
    ask: &Ask<'_>,
    reality: &Reality,
    chosen: &BTreeMap<PathBuf, Both<'_>>,
) -> Result<Bare, PromoteError> {
    if ask.purpose != Purpose::Apply || ask.allow_executes {
        return Ok(Bare::default());
    }
    let paths = |comes: bool| {
        let paths = chosen.iter().filter(move |(_, both)| both.after.is_some() == comes);
        paths.map(|(path, _)| path.as_path())
    };
    let failed = |source| PromoteError::looked(PathBuf::from("/"), source);
    Bare::among(reality, paths(true), &paths(false).collect()).map_err(failed)
}

/// Says that what was named in the git folder of another repository does not come, and what does.
fn not_brought(folder: &Path) -> Caveat {
    let text = format!(
        "`{}` is git's own and is never promoted as files: its hooks and settings would run by themselves. To bring \
         commits, make the sandbox in that repository; they come along as refs.",
        folder.display()
    );
    Caveat::at(CaveatKind::Commits, folder.display().to_string(), text)
}

/// What is gathered while path after path is looked at.
pub(super) struct Gathered<'b, 'a> {
    pub(super) ask: &'b Ask<'a>,
    pub(super) reality: &'b Reality,
    pub(super) rights: Rights,
    executes: ExecutesList,
    called: Called,
    bare: Bare,
    pub(super) report: Assessment,
    pub(super) outcomes: BTreeMap<PathBuf, Outcome<'a>>,
    pub(super) disputed: Vec<PathBuf>,
    /// How many lines of conflicts may still be told.
    lines_left: usize,
}

impl<'a> Gathered<'_, 'a> {
    fn path(&mut self, path: &Path, spot: Spot, both: Both<'a>, comes_with_folder: bool) -> io::Result<()> {
        let told = self.told(path);
        if let Some(version) = &both.after
            && let Some(reason) = self.refusal(version)?
        {
            self.report.refused.push(Refusal { path: told, reason });
            return Ok(());
        }
        if self.ask.purpose != Purpose::Apply
            && let Some(version) = &both.after
            && is_lost(version)?
        {
            self.left_behind(path, LOST);
            return Ok(());
        }
        let now = self.reality.look(&spot)?;
        let since = self.ask.since;
        let sides =
            Sides { both: &both, now: &now, reality: self.reality, spot: &spot, since, comes_with_folder };
        let fate = match sides.judge()? {
            Judgement::Nothing => return Ok(()),
            Judgement::Same => Fate::Stay(Stay::Same),
            Judgement::Take if self.ask.disputed.iter().any(|disputed| disputed == path) => {
                self.conflict(&told, &sides, ConflictReason::MovedOn)?
            }
            Judgement::Take => Fate::Ours,
            // Of a pipe or a socket there is nothing to merge.
            Judgement::Merge(_) if both.after.as_ref().is_some_and(is_endpoint) => Fate::Ours,
            Judgement::Merge(blend) => Fate::Blend(blend),
            Judgement::Conflict(reason) => self.conflict(&told, &sides, reason)?,
        };
        if !fate.stays() && self.ask.purpose == Purpose::Apply {
            let reason = match &now {
                Now::Present(real) if now.is_folder() && is_folder(both.after.as_ref()) => {
                    refuse::dressing(real, self.rights)
                }
                _ => refuse::moving(self.reality, &spot, &now, self.rights)?,
            };
            if let Some(reason) = reason {
                self.report.refused.push(Refusal { path: told.clone(), reason });
            }
            self.would_execute(path, &told, both.after.as_ref());
        }
        self.outcomes.insert(path.to_owned(), Outcome { spot, both, now, fate, is_along: false });
        Ok(())
    }

    /// Says that something does not come along.
    pub(super) fn left_behind(&mut self, path: &Path, why: &str) {
        let place = self.told(path).display().into_owned();
        self.report.caveats.push(Caveat::at(CaveatKind::View, place, why));
    }

    /// Why a version may not come, if so. Into a layer comes all that can be read.
    pub(super) fn refusal(&self, version: &Version<'_>) -> io::Result<Option<RefusalReason>> {
        let reason = refuse::coming(version, self.rights)?;
        Ok(reason.filter(|reason| match self.ask.purpose {
            Purpose::Apply => true,
            Purpose::Preview | Purpose::Refresh => *reason == RefusalReason::Unreadable,
        }))
    }

    pub(super) fn conflict(
        &mut self,
        told: &Text,
        sides: &Sides<'_>,
        reason: ConflictReason,
    ) -> io::Result<Fate> {
        let ours_possible = !matches!(reason, ConflictReason::FolderReplaced | ConflictReason::Branches);
        match self.ask.resolutions.of(told) {
            OnConflict::Ours if ours_possible => return Ok(Fate::Ours),
            OnConflict::Theirs => return Ok(Fate::Stay(Stay::Kept)),
            OnConflict::Ours | OnConflict::Abort => {}
        }
        let Both { before, after, .. } = sides.both;
        let ours = match reason {
            ConflictReason::FolderHoldsMore => Did::Delete,
            _ => sides.ours()?,
        };
        let entry = |version: &Option<Version<'_>>| version.as_ref().map(|version| version.entry.clone());
        let written = match after {
            Some(after) => after.stat()?.and_then(|stat| modified(&stat)),
            None => None,
        };
        let real = sides.now.real();
        let theirs = sides.theirs()?;
        let Told { hunks, more } = self.hunks(sides, reason)?;
        self.report.conflicts.push(Conflict {
            path: told.clone(),
            reason,
            before: entry(before),
            ours: Side { did: ours, entry: entry(after), modified: written },
            theirs: Side {
                did: theirs,
                entry: real.map(|real| real.entry.clone()),
                modified: real.and_then(|real| modified(&real.stat)),
            },
            ours_possible,
            hunks,
            more_lines: more,
        });
        Ok(Fate::Stay(Stay::Undecided))
    }

    /// What of both texts is in each other's way, where it is texts that are.
    fn hunks(&mut self, sides: &Sides<'_>, reason: ConflictReason) -> io::Result<Told> {
        let is_about_text = match reason {
            ConflictReason::SameLines
            | ConflictReason::BothCreated
            | ConflictReason::ChangedAndGone
            | ConflictReason::FolderGone
            | ConflictReason::MovedOn => true,
            ConflictReason::SameAttributes
            | ConflictReason::Branches
            | ConflictReason::FolderHoldsMore
            | ConflictReason::FolderReplaced => false,
        };
        if !is_about_text {
            return Ok(Told::default());
        }
        let told = sides.texts()?.hunks(self.lines_left);
        let excerpts = told.hunks.iter().flat_map(|hunk| [&hunk.before, &hunk.ours, &hunk.theirs]);
        let shown: usize = excerpts.flatten().map(|excerpt| excerpt.lines.len()).sum();
        self.lines_left -= shown;
        Ok(told)
    }

    fn would_execute(&mut self, path: &Path, told: &Text, after: Option<&Version<'_>>) {
        let Some(after) = after else { return };
        let is_folder = after.entry.kind == FileKind::Directory;
        let is_link = after.entry.kind == FileKind::Symlink;
        let listed = || {
            let mut homes = self.ask.homes.iter().map(|home| Some(home.as_path())).chain([None]);
            let listed = homes.find_map(|home| self.executes.reason(path, is_link, home));
            listed.or_else(|| self.called.reason(path, is_link)).filter(|_| !is_folder)
        };
        match self.bare.reason(path, is_folder).or_else(listed) {
            Some(why) if !self.ask.allow_executes => {
                self.report.executes.push(Executes { path: told.clone(), why: why.to_owned() });
            }
            Some(_) | None => {}
        }
    }

    /// What could not be compared might have been part of it.
    fn unread(&mut self) {
        let workspace = self.ask.comparison.workspace();
        for path in self.ask.comparison.unread() {
            let in_workspace = workspace.is_some_and(|workspace| path.starts_with(workspace));
            let area = if in_workspace { Area::Workspace } else { Area::Machine };
            let is_meant = match self.ask.paths {
                [] => in_workspace,
                paths => paths.iter().any(|asked| path.starts_with(asked)),
            };
            if is_meant && !is_masked(&path, self.ask) && !is_git(&path, area, self.ask) {
                let refusal = Refusal { path: self.told(&path), reason: RefusalReason::Unreadable };
                self.report.refused.push(refusal);
            }
        }
    }

    /// A folder that is to go may hold things that the sandbox never saw: added since, masked, or never captured.
    fn more_in_folders(&mut self) -> Result<(), PromoteError> {
        let mut more = Vec::new();
        for (path, outcome) in &self.outcomes {
            let goes = outcome.now.is_folder() && !is_folder(outcome.both.after.as_ref());
            if outcome.fate.stays() || !goes || outcome.is_along {
                continue;
            }
            for (path, spot) in self.children(path, &outcome.spot)? {
                // Nobody inside has seen what is masked. Outside it must not go unseen.
                let is_hidden = self.ask.purpose != Purpose::Apply && is_masked(&path, self.ask);
                if !self.outcomes.contains_key(&path) && !is_hidden {
                    more.push((path, spot));
                }
            }
        }
        while let Some((path, spot)) = more.pop() {
            let failed = |source| PromoteError::looked(path.clone(), source);
            let now = self.reality.look(&spot).map_err(failed)?;
            let both = Both { area: Area::Workspace, before: None, after: None };
            let (reality, since) = (self.reality, self.ask.since);
            let sides =
                Sides { both: &both, now: &now, reality, spot: &spot, since, comes_with_folder: false };
            let told = self.told(&path);
            let fate = self.conflict(&told, &sides, ConflictReason::FolderHoldsMore).map_err(failed)?;
            // Whoever decides for the sandbox lets it go along, with all that is in it.
            if !fate.stays() && now.is_folder() {
                more.extend(self.children(&path, &spot)?);
            }
            self.outcomes.insert(path, Outcome { spot, both, now, fate, is_along: false });
        }
        Ok(())
    }

    fn children(&self, path: &Path, spot: &Spot) -> Result<Vec<(PathBuf, Spot)>, PromoteError> {
        let names = self.reality.names(spot);
        let names = names.map_err(|source| PromoteError::looked(path.to_owned(), source))?;
        Ok(names.iter().map(|name| (path.join(OsStr::from_bytes(name)), spot.child(name))).collect())
    }

    /// The path as it is shown.
    pub(super) fn told(&self, path: &Path) -> Text {
        told(self.ask.comparison, path)
    }
}

pub(super) fn told(comparison: &Comparison, path: &Path) -> Text {
    match comparison.workspace().and_then(|root| path.strip_prefix(root).ok()) {
        Some(inside) if inside.as_os_str().is_empty() => Text::from("."),
        Some(inside) => Text::from(inside.to_owned()),
        None => Text::from(path.to_owned()),
    }
}

fn modified(stat: &Stat) -> Option<Timestamp> {
    Timestamp::new(stat.mtime.0, i32::try_from(stat.mtime.1).ok()?).ok()
}

/// Writes down what becomes of each path.
fn tell<'b, 'a: 'b>(report: &mut Assessment, outcomes: impl Iterator<Item = (Text, &'b Outcome<'a>)>) {
    let actions = outcomes.filter_map(|(path, outcome)| {
        let action = match &outcome.fate {
            Fate::Stay(Stay::Same) => Action::Same,
            Fate::Stay(Stay::Kept) => Action::Keep,
            Fate::Stay(Stay::Undecided) => return None,
            Fate::Ours if outcome.both.after.is_none() => Action::Delete,
            Fate::Ours if outcome.now.real().is_none() => Action::Create,
            Fate::Ours => Action::Modify,
            Fate::Blend(_) => Action::Merge,
        };
        Some(Planned { path, action })
    });
    report.actions.extend(actions);
    report.actions.sort_by(|one, other| order(one).cmp(&order(other)));
}

/// Deletions first: nobody may miss them at the end of a long list.
fn order(planned: &Planned) -> (bool, &Text) {
    (planned.action != Action::Delete, &planned.path)
}

/// Is it something that only means anything to whoever has it open, and not even in the layers any more?
pub(super) fn is_lost(version: &Version<'_>) -> io::Result<bool> {
    Ok(is_endpoint(version) && version.sealed()?.is_none())
}

fn is_endpoint(version: &Version<'_>) -> bool {
    match version.entry.kind {
        FileKind::File | FileKind::Directory | FileKind::Symlink => false,
        FileKind::Fifo | FileKind::Socket | FileKind::Device => true,
    }
}

/// Of all conflicts together: beyond that, paths say more than lines.
const LINES: usize = 1000;
pub(super) const LOST: &str = "Nobody is at the other end of this any more, so it does not come along.";

/// Does the sandbox make a folder of it?
fn becomes_folder(both: &Both<'_>) -> bool {
    is_folder(both.after.as_ref()) && !is_folder(both.before.as_ref())
}

fn is_folder(version: Option<&Version<'_>>) -> bool {
    version.is_some_and(|version| version.entry.kind == FileKind::Directory)
}
