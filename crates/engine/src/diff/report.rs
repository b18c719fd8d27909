//! From what differs to what is told.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::diff::{Change, ChangeKind, Detail, Diff, Lines};
use model::exec::Text;

use super::both::Version;
use super::compare::is_binary;
use super::part::{PartDiff, Role};
use super::patch;
use super::walk::{Found, Kind};
use super::{Comparison, DiffError};

pub(super) fn diff(comparison: &Comparison, detail: Detail) -> Result<Diff, DiffError> {
    let mut diff = Diff { root: comparison.workspace.clone().map(Text::from), ..Diff::default() };
    let mut git = BTreeSet::new();
    for part in &comparison.parts {
        for found in &part.found {
            match git_folder(part, &found.path) {
                Some(folder) => drop(git.insert(folder)),
                None if part.role == Role::Workspace => diff.workspace.push(change(part, found, detail)?),
                None => diff.machine.push(change(part, found, detail)?),
            }
        }
        diff.unread.extend(part.unread.iter().map(|path| Text::from(part.absolute(part.shown(path)))));
    }
    diff.git = git.into_iter().map(Text::from).collect();
    put_in_order(&mut diff);
    Ok(diff)
}

pub(super) fn put_in_order(diff: &mut Diff) {
    for changes in [&mut diff.workspace, &mut diff.machine] {
        changes.sort_by(|one, other| order(one).cmp(&order(other)));
    }
    diff.unread.sort();
    diff.unread.dedup();
}

/// Deletions first: nobody may miss them at the end of a long list.
fn order(change: &Change) -> (bool, &Text) {
    (change.kind != ChangeKind::Deleted, &change.path)
}

/// The folder of git's own in which the path lies, as far as the workspace goes.
pub(super) fn git_folder(part: &PartDiff, path: &[u8]) -> Option<PathBuf> {
    match part.role {
        Role::Machine => None,
        Role::Git => Some(part.mountpoint.clone()),
        Role::Workspace => {
            let shown = part.shown(path);
            let mut end = 0;
            for name in shown.split(|byte| *byte == b'/') {
                end += name.len();
                if name == b".git" {
                    return Some(part.absolute(&shown[..end]));
                }
                end += 1;
            }
            let is_in = |folder: &&Vec<u8>| {
                Path::new(OsStr::from_bytes(shown)).starts_with(OsStr::from_bytes(folder))
            };
            part.git.iter().find(is_in).map(|folder| part.absolute(folder))
        }
    }
}

fn change(part: &PartDiff, found: &Found, detail: Detail) -> Result<Change, DiffError> {
    let path = told(part, &found.path);
    let kind = match (found.kind, &found.before) {
        (Kind::Deleted, _) => ChangeKind::Deleted,
        (Kind::Renamed, Some(before)) => ChangeKind::Renamed { from: told(part, &before.origin) },
        (Kind::Added | Kind::Renamed, _) => ChangeKind::Added,
        (Kind::Modified, _) => ChangeKind::Modified,
        (Kind::TypeChanged, _) => ChangeKind::TypeChanged,
    };
    let failed = |source| DiffError::Read { path: part.absolute(part.shown(&found.path)), source };
    let (before, after) = Version::of(part, found);
    let text = text(before.as_ref(), after.as_ref(), found.contents, detail).map_err(failed)?;
    Ok(Change {
        path,
        kind,
        before: before.map(|version| version.entry),
        after: after.map(|version| version.entry),
        contents: found.contents,
        binary: text.binary,
        xattrs: found.xattrs.clone(),
        ignored: part.is_ignored(found),
        lines: text.lines,
        by: None,
    })
}

fn told(part: &PartDiff, path: &[u8]) -> Text {
    let shown = part.shown(path);
    match part.role {
        Role::Workspace if shown.is_empty() => Text::from("."),
        Role::Workspace => Text(shown.to_vec()),
        Role::Git | Role::Machine => Text(part.absolute(shown).as_os_str().as_bytes().to_vec()),
    }
}

/// What is said of a file's text.
pub(super) struct Wording {
    pub(super) binary: bool,
    pub(super) lines: Option<Lines>,
}

/// Looks at what both sides hold; `contents` says whether it differs.
pub(super) fn text(
    before: Option<&Version<'_>>,
    after: Option<&Version<'_>>,
    contents: bool,
    detail: Detail,
) -> io::Result<Wording> {
    let binary = binary(before)? || binary(after)?;
    let lines = match detail {
        Detail::Lines if contents && !binary => lines(before, after)?,
        Detail::Lines | Detail::Paths => None,
    };
    Ok(Wording { binary, lines })
}

fn binary(version: Option<&Version<'_>>) -> io::Result<bool> {
    match version.filter(|version| version.is_file()) {
        Some(file) => readable(file.read().and_then(is_binary)),
        None => Ok(false),
    }
}

/// Of a file, unless it is too large to be compared in memory.
fn lines(before: Option<&Version<'_>>, after: Option<&Version<'_>>) -> io::Result<Option<Lines>> {
    let mut versions = before.into_iter().chain(after);
    if !versions.all(|version| version.is_file() && version.entry.size <= COUNTED) {
        return Ok(None);
    }
    let whole = |version: Option<&Version<'_>>| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(version) = version {
            version.read()?.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    Ok(Some(patch::count_lines(&whole(before)?, &whole(after)?)))
}

/// What cannot be read is told elsewhere, and what is gone by now nowhere.
pub(super) fn readable(binary: io::Result<bool>) -> io::Result<bool> {
    match binary {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            Ok(false)
        }
        other => other,
    }
}

const COUNTED: u64 = 16 << 20;
