//! What two sandboxes did differently: file by file, in their workspaces, without what git ignores.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::diff::Between;
use model::exec::Text;
use model::files::FileKind;

use super::both::{Area, Both, Version};
use super::compare::same;
use super::{Comparison, DiffError};

/// Compares two comparisons. What both did to a file is compared as it stands now, whatever each started from.
pub fn between(one: &Comparison, other: &Comparison) -> Result<Between, DiffError> {
    let (ours, theirs) = (files(one)?, files(other)?);
    let mut between = Between::default();
    for path in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        match (ours.get(path), theirs.get(path)) {
            (Some(ours), Some(theirs)) => {
                let failed = |source| DiffError::Compare { path: path.as_os_str().into(), source };
                if is_same(ours, theirs).map_err(failed)? {
                    between.same += 1;
                } else {
                    between.different.push(path.clone());
                }
            }
            (Some(_), None) => between.one.push(path.clone()),
            (None, _) => between.other.push(path.clone()),
        }
    }
    Ok(between)
}

/// Every file and link that differs, by its path from the workspace's root. Folders are told by what is in them.
fn files(comparison: &Comparison) -> Result<BTreeMap<Text, Both<'_>>, DiffError> {
    let root = comparison.workspace().unwrap_or(Path::new("/"));
    let mut files = BTreeMap::new();
    for (path, both) in comparison.both()? {
        let stands = both.after.as_ref().or(both.before.as_ref());
        let is_folder = stands.is_some_and(|version| version.entry.kind == FileKind::Directory);
        if both.area == Area::Workspace && !is_folder {
            let path = path.strip_prefix(root).unwrap_or(&path);
            files.insert(Text(path.as_os_str().as_bytes().to_vec()), both);
        }
    }
    Ok(files)
}

fn is_same(one: &Both<'_>, other: &Both<'_>) -> io::Result<bool> {
    let (one, other) = match (&one.after, &other.after) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return Ok(one.is_none() && other.is_none()),
    };
    let is_file = |version: &Version<'_>| version.entry.kind == FileKind::File;
    if one.entry != other.entry || !is_file(one) {
        return Ok(one.entry == other.entry);
    }
    same(one.contents()?.reader(), other.contents()?.reader())
}
