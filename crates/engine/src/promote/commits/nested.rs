//! Repositories besides the workspace's own: submodules, and others that lie in it.
//!
//! They are told by what a git folder has, `HEAD` and `objects`, among what the sandbox changed. What they are brought into is
//! the real repository at exactly the same place, never one that a link leads to.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use model::files::FileKind;

use super::CommitsError;
use super::host::Host;
use super::names::is_object;
use super::tips::Changed;
use crate::diff::{Area, Comparison};

/// One in which something changed.
#[derive(Debug)]
pub(super) struct Nested {
    /// Its git folder.
    pub(super) folder: PathBuf,
    /// The real one; `None` if there is none at this place.
    pub(super) host: Option<Host>,
    /// Objects came: somebody committed, or stashed, or only added.
    pub(super) has_objects: bool,
}

pub(super) fn find(comparison: &Comparison, own: Option<&Host>) -> Result<Vec<Nested>, CommitsError> {
    let both = comparison.both().map_err(CommitsError::Compare)?;
    let roots: Vec<&Path> =
        comparison.workspace().into_iter().chain(own.map(|own| own.common.as_path())).collect();
    let mut folders: HashMap<&Path, Option<PathBuf>> = HashMap::new();
    let mut found: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let changed = both.iter().filter(|(_, both)| both.area == Area::Git && both.after.is_some());
    for (path, _) in changed {
        let Some(parent) = path.parent() else { continue };
        let folder = match folders.get(parent) {
            Some(known) => known,
            None => {
                let folder = around(comparison, &both, parent, &roots)
                    .map_err(|source| CommitsError::Read { path: path.clone(), source })?;
                folders.entry(parent).or_insert(folder)
            }
        };
        let Some(folder) = folder.as_ref().filter(|folder| own.is_none_or(|own| own.common != **folder))
        else {
            continue;
        };
        let name = path.strip_prefix(folder.join("objects")).ok().and_then(Path::to_str);
        *found.entry(folder.clone()).or_default() |= name.is_some_and(is_object);
    }
    let nested = found.into_iter().map(|(folder, has_objects)| {
        let host = Host::at(&folder);
        Nested { folder, host, has_objects }
    });
    Ok(nested.collect())
}

/// The git folder in which a path of the sandbox lies.
fn around(
    comparison: &Comparison,
    both: &Changed<'_>,
    path: &Path,
    roots: &[&Path],
) -> io::Result<Option<PathBuf>> {
    let kind = |path: PathBuf| -> io::Result<Option<FileKind>> {
        Ok(match both.get(&path) {
            Some(both) => both.after.as_ref().map(|version| version.entry.kind),
            None => comparison.before(&path)?.map(|version| version.entry.kind),
        })
    };
    let beneath = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    for folder in path.ancestors().take_while(beneath) {
        if kind(folder.join("HEAD"))? == Some(FileKind::File)
            && kind(folder.join("objects"))? == Some(FileKind::Directory)
        {
            return Ok(Some(folder.to_owned()));
        }
    }
    Ok(None)
}
