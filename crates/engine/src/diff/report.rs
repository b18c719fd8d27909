//! From what differs to what is told.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::diff::{Change, ChangeKind, Detail, Diff, Lines};
use model::exec::Text;
use model::files::FileKind;

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
    for changes in [&mut diff.workspace, &mut diff.machine] {
        changes.sort_by(|one, other| order(one).cmp(&order(other)));
    }
    diff.unread.sort();
    diff.git = git.into_iter().map(Text::from).collect();
    Ok(diff)
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
    let binary = binary(part, found).map_err(failed)?;
    let lines = match detail {
        Detail::Lines if !binary => lines(part, found).map_err(failed)?,
        Detail::Lines | Detail::Paths => None,
    };
    Ok(Change {
        path,
        kind,
        before: found.before.as_ref().map(|node| node.look.entry.clone()),
        after: found.after.as_ref().map(|look| look.entry.clone()),
        contents: found.contents,
        binary,
        xattrs: found.xattrs.clone(),
        ignored: part.is_ignored(found),
        lines,
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

fn binary(part: &PartDiff, found: &Found) -> io::Result<bool> {
    let is_file = |kind| kind == FileKind::File;
    let was_file = found.before.as_ref().is_some_and(|node| is_file(node.look.entry.kind));
    let is_file = found.after.as_ref().is_some_and(|look| is_file(look.entry.kind));
    let was_binary = was_file && readable(part.read_before(found).and_then(is_binary))?;
    Ok(was_binary || is_file && readable(part.read_after(found).and_then(is_binary))?)
}

/// Of a file whose contents changed, unless it is too large to be compared in memory.
fn lines(part: &PartDiff, found: &Found) -> io::Result<Option<Lines>> {
    let looks = [found.before.as_ref().map(|node| &node.look), found.after.as_ref()];
    let mut looks = looks.into_iter().flatten();
    if !found.contents || !looks.all(|look| look.entry.kind == FileKind::File && look.entry.size <= COUNTED) {
        return Ok(None);
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if found.before.is_some() {
        part.read_before(found)?.read_to_end(&mut before)?;
    }
    if found.after.is_some() {
        part.read_after(found)?.read_to_end(&mut after)?;
    }
    Ok(Some(patch::count_lines(&before, &after)))
}

/// What cannot be read is told elsewhere, and what is gone by now nowhere.
fn readable(binary: io::Result<bool>) -> io::Result<bool> {
    match binary {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            Ok(false)
        }
        other => other,
    }
}

const COUNTED: u64 = 16 << 20;
