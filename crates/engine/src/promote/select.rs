//! Which of the sandbox's changes are to be promoted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::exec::Text;
use model::files::FileKind;
use model::promotion::LeftOut;

use super::{Ask, Purpose};
use crate::diff::{Area, Both, Version};

/// What was chosen, and what was left out of it.
pub(super) struct Selection<'a> {
    pub(super) chosen: BTreeMap<PathBuf, Both<'a>>,
    /// What is never promoted, and belongs to the sandbox's state all the same.
    pub(super) along: BTreeMap<PathBuf, Both<'a>>,
    pub(super) left_out: LeftOut,
    /// Git's own folders of other repositories, in which something that was named is left out all the same.
    pub(super) foreign: Vec<PathBuf>,
}

pub(super) fn select<'a>(mut both: BTreeMap<PathBuf, Both<'a>>, ask: &Ask<'_>) -> Selection<'a> {
    let mut left_out = LeftOut::default();
    let mut along = BTreeMap::new();
    let mut foreign = Vec::new();
    if ask.purpose != Purpose::Apply {
        both.retain(|_, both| both.area != Area::Machine);
        along = both.extract_if(.., |path, both| comes_along(path, both.area, ask)).collect();
    }
    both.retain(|path, both| {
        if is_masked(path, ask) {
            left_out.masked.push(Text::from(path.clone()));
        } else if !is_git(path, both.area, ask) {
            return true;
        } else if both.area == Area::Machine && !is_named(path, ask) {
            left_out.machine += 1;
        } else {
            let folder = git_folder(path);
            let told = Text::from(folder.clone());
            if !left_out.git.contains(&told) {
                left_out.git.push(told);
                foreign.extend((both.area == Area::Machine).then_some(folder));
            }
        }
        false
    });
    let mut chosen: BTreeSet<PathBuf> = BTreeSet::new();
    chosen.extend(
        both.iter().filter(|(path, both)| is_meant(path, both.area, ask)).map(|(path, _)| path.clone()),
    );
    let needed: Vec<PathBuf> = both.keys().filter(|path| is_needed(path, &both, &chosen)).cloned().collect();
    chosen.extend(needed);
    both.retain(|path, both| {
        if chosen.contains(path) {
            return true;
        }
        *match both.area {
            Area::Ignored => &mut left_out.ignored,
            Area::Machine => &mut left_out.machine,
            Area::Workspace | Area::Git => &mut left_out.unnamed,
        } += 1;
        false
    });
    Selection { chosen: both, along, left_out, foreign }
}

pub(super) fn is_masked(path: &Path, ask: &Ask<'_>) -> bool {
    ask.masked.iter().any(|masked| path.starts_with(masked))
}

/// Is it git's own, of whatever repository? Its hooks and settings run by themselves, so the name alone counts, and in
/// capitals, too: some file systems take them for the same.
pub(super) fn is_git(path: &Path, area: Area, ask: &Ask<'_>) -> bool {
    let shown = match area {
        Area::Git => return true,
        Area::Machine => path,
        // The workspace itself may be a worktree that somebody keeps in a git folder.
        Area::Workspace | Area::Ignored => {
            let workspace = ask.comparison.workspace();
            workspace.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path)
        }
    };
    shown.iter().any(is_git_name)
}

fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn comes_along(path: &Path, area: Area, ask: &Ask<'_>) -> bool {
    match area {
        Area::Git => ask.purpose == Purpose::Refresh,
        Area::Ignored => !is_meant(path, area, ask),
        Area::Workspace | Area::Machine => {
            is_masked(path, ask) || ask.purpose == Purpose::Refresh && is_git(path, area, ask)
        }
    }
}

/// Ignored files and the machine have to be named: a build folder is made again, and nobody expects `/etc` to change.
fn is_meant(path: &Path, area: Area, ask: &Ask<'_>) -> bool {
    match area {
        Area::Workspace => ask.paths.is_empty() || is_named(path, ask),
        Area::Ignored | Area::Machine => is_named(path, ask),
        Area::Git => false,
    }
}

pub(super) fn is_named(path: &Path, ask: &Ask<'_>) -> bool {
    ask.paths.iter().any(|named| path.starts_with(named))
}

/// A folder cannot go without what is in it, nor can something come without the folder it is in.
fn is_needed(path: &Path, both: &BTreeMap<PathBuf, Both<'_>>, chosen: &BTreeSet<PathBuf>) -> bool {
    if chosen.contains(path) {
        return false;
    }
    let Some(this) = both.get(path) else { return false };
    let goes_along = this.before.is_some()
        && path.ancestors().skip(1).any(|above| {
            chosen.contains(above)
                && both
                    .get(above)
                    .is_some_and(|above| is_folder(above.before.as_ref()) && !is_folder(above.after.as_ref()))
        });
    let is_way = is_folder(this.after.as_ref())
        && !is_folder(this.before.as_ref())
        && chosen
            .range(path.to_owned()..)
            .take_while(|below| below.starts_with(path))
            .any(|below| both.get(below).is_some_and(|below| below.after.is_some()));
    goes_along || is_way
}

fn is_folder(version: Option<&Version<'_>>) -> bool {
    version.is_some_and(|version| version.entry.kind == FileKind::Directory)
}

/// The folder of git's own in which a path lies.
fn git_folder(path: &Path) -> PathBuf {
    let folder = path.ancestors().find(|folder| folder.file_name().is_some_and(is_git_name));
    folder.or(path.parent()).unwrap_or(path).to_owned()
}
