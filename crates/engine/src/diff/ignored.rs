//! Which changes git would leave out of a commit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::files::FileKind;

use super::part::PartDiff;
use super::walk::Found;
use crate::capture::files::{join, split};
use crate::capture::git::{Repository, Rules};

/// The paths, among those that differ and those they came from, that git ignores: by the rules as the sandbox has them
/// now.
pub(super) fn among(part: &PartDiff) -> HashSet<Vec<u8>> {
    let Some(repository) = Repository::at(&part.mountpoint, b"") else { return HashSet::new() };
    let mut lists = Lists { part, repository: Arc::new(repository), known: HashMap::new() };
    let origins = part.found.iter().filter_map(|found| Some((&found.before.as_ref()?.origin, found)));
    let paths = part.found.iter().map(|found| (&found.path, found)).chain(origins);
    let ignored = paths.filter(|(path, found)| lists.ignore(part.shown(path), is_folder(found)));
    ignored.map(|(path, _)| path.clone()).collect()
}

/// The rules of each folder, read once.
struct Lists<'a> {
    part: &'a PartDiff,
    repository: Arc<Repository>,
    /// `None`: the folder is ignored itself.
    known: HashMap<Vec<u8>, Option<Arc<Rules>>>,
}

impl Lists<'_> {
    fn ignore(&mut self, path: &[u8], is_folder: bool) -> bool {
        if path.is_empty() {
            return false;
        }
        match self.of(split(path).0) {
            Some(rules) => rules.ignore(path, is_folder) && !self.repository.tracks(path, is_folder),
            None => !self.repository.tracks(path, is_folder),
        }
    }

    fn of(&mut self, folder: &[u8]) -> Option<Arc<Rules>> {
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let rules = self.read(folder);
        self.known.insert(folder.to_vec(), rules.clone());
        rules
    }

    fn read(&mut self, folder: &[u8]) -> Option<Arc<Rules>> {
        // A list that cannot be read ignores nothing.
        let own = self.part.read_now(&join(folder, b".gitignore")).unwrap_or_else(|error| {
            tracing::debug!(%error, "an ignore list that cannot be read is passed over");
            None
        });
        if folder.is_empty() {
            return Some(Arc::new(Rules::of_repository(self.repository.clone(), own.as_deref())));
        }
        let above = self.of(split(folder).0)?;
        if above.ignore(folder, true) {
            return None;
        }
        match own {
            Some(own) => Some(Arc::new(Rules::below(&above, folder, &own))),
            None => Some(above),
        }
    }
}

fn is_folder(found: &Found) -> bool {
    let look = found.after.as_ref().or(found.before.as_ref().map(|node| &node.look));
    look.is_some_and(|look| look.entry.kind == FileKind::Directory)
}
