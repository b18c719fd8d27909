//! The workspace's changes as a patch that `git apply` takes.
//!
//! A patch knows files and symbolic links, their contents and whether they can be executed. Owners, other permissions,
//! attributes, empty folders, pipes and sockets are beyond it. What git ignores, and git's own folders, are left out.

mod binary;
mod hunks;
mod quote;
mod side;

use std::collections::HashSet;
use std::io::{self, Write};

use model::files::FileKind;

use super::lowers::Node;
use super::part::{PartDiff, Role};
use super::report::git_folder;
use super::walk::{Found, Kind};
use super::{Comparison, DiffError};
use crate::capture::files::join;
pub(super) use hunks::count as count_lines;
use quote::quoted;
pub(super) use side::Side;

/// Writes the patch.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> Result<(), DiffError> {
    for part in comparison.parts.iter().filter(|part| part.role == Role::Workspace) {
        let mut found: Vec<_> = part
            .found
            .iter()
            .filter(|found| git_folder(part, &found.path).is_none() && !part.is_ignored(found))
            .collect();
        found.sort_by(|one, other| order(one).cmp(&order(other)));
        let listed: HashSet<&[u8]> = part.found.iter().map(|found| found.path.as_slice()).collect();
        for found in found {
            let failed = |source| DiffError::Read { path: part.absolute(part.shown(&found.path)), source };
            let mut text = Vec::new();
            if found.kind == Kind::Renamed && !found.is_file() {
                moved_along(part, found, &listed, &mut text).map_err(failed)?;
            } else {
                one(part, found, &mut text).map_err(failed)?;
            }
            out.write_all(&text).map_err(DiffError::HandOn)?;
        }
    }
    Ok(())
}

fn order(found: &Found) -> (bool, &[u8]) {
    (found.kind != Kind::Deleted, &found.path)
}

fn one(part: &PartDiff, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let before = match &found.before {
        Some(node) => Side::before(part, node)?,
        None => None,
    };
    between(before, Side::after(part, found)?, out)
}

/// From one side to the other.
pub(super) fn between(before: Option<Side>, after: Option<Side>, out: &mut dyn Write) -> io::Result<()> {
    match (before, after) {
        // Git knows no change of type: one goes, another comes.
        (Some(before), Some(after)) if before.is_link() != after.is_link() => {
            change(Some(&before), None, out)?;
            change(None, Some(&after), out)
        }
        (before, after) => change(before.as_ref(), after.as_ref(), out),
    }
}

/// A moved folder: git knows only files, so each that came along unchanged is told.
fn moved_along(
    part: &PartDiff,
    found: &Found,
    listed: &HashSet<&[u8]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(folder) = &found.before else { return Ok(()) };
    let mut pending: Vec<(Vec<u8>, Node)> = vec![(found.path.clone(), folder.clone())];
    while let Some((path, node)) = pending.pop() {
        if node.look.entry.kind == FileKind::Directory {
            for child in part.children_before(&node)?.into_iter().rev() {
                let path = join(&path, child.name());
                if came_along(part, &path, &child)? {
                    pending.push((path, child));
                }
            }
        } else if !listed.contains(path.as_slice())
            && let Some(before) = Side::before(part, &node)?
        {
            let after = Side { path: part.shown(&path).to_vec(), ..before.clone() };
            change(Some(&before), Some(&after), out)?;
        }
    }
    Ok(())
}

/// What went on, or was replaced by a folder made anew, is found by itself.
fn came_along(part: &PartDiff, path: &[u8], node: &Node) -> io::Result<bool> {
    match part.upper.look(path)? {
        None => Ok(true),
        Some(look) if look.is_whiteout => Ok(false),
        Some(_) if node.look.entry.kind == FileKind::Directory => part.is_merged(path),
        Some(_) => Ok(true),
    }
}

/// One file's part of the patch.
fn change(before: Option<&Side>, after: Option<&Side>, out: &mut dyn Write) -> io::Result<()> {
    let Some(any) = after.or(before) else { return Ok(()) };
    let (old, new) = (before.unwrap_or(any), after.unwrap_or(any));
    let same_contents = before.zip(after).is_some_and(|(before, after)| before.bytes == after.bytes);
    if same_contents && old.mode == new.mode && old.path == new.path {
        return Ok(());
    }
    writeln!(out, "diff --git {} {}", quoted("a/", &old.path), quoted("b/", &new.path))?;
    match (before, after) {
        (None, Some(_)) => writeln!(out, "new file mode {}", new.mode)?,
        (Some(_), None) => writeln!(out, "deleted file mode {}", old.mode)?,
        (Some(_), Some(_)) | (None, None) => {
            if old.mode != new.mode {
                writeln!(out, "old mode {}\nnew mode {}", old.mode, new.mode)?;
            }
            if old.path != new.path {
                let similarity = hunks::similarity(&old.bytes, &new.bytes);
                writeln!(out, "similarity index {similarity}%")?;
                writeln!(out, "rename from {}\nrename to {}", quoted("", &old.path), quoted("", &new.path))?;
            }
        }
    }
    if same_contents {
        return Ok(());
    }
    let (old_id, new_id) = (side::id(before)?, side::id(after)?);
    let mode = if before.is_some() && after.is_some() && old.mode == new.mode {
        format!(" {}", new.mode)
    } else {
        String::new()
    };
    writeln!(out, "index {old_id}..{new_id}{mode}")?;
    let (was, is) = (side::bytes(before), side::bytes(after));
    if side::is_binary(was) || side::is_binary(is) {
        return binary::write(was, is, out);
    }
    if was.is_empty() && is.is_empty() {
        return Ok(());
    }
    let name = |side: Option<&Side>, prefix| {
        side.map_or_else(|| "/dev/null".to_owned(), |side| quoted(prefix, &side.path))
    };
    writeln!(out, "--- {}\n+++ {}", name(before, "a/"), name(after, "b/"))?;
    hunks::write(was, is, out)
}
