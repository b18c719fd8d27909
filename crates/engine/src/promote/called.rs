//! What git runs by itself because its settings say so: hooks in a folder that `core.hooksPath` names, and settings in a file
//! that others include. Both may be files of a work tree.
//!
//! Asks for the real settings only: those of the sandbox are never promoted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::commits::CommitsError;
use super::commits::git::{Git, Setting};
use crate::capture::git::git_dir;

/// Where git looks for hooks and settings.
#[derive(Debug, Default)]
pub(super) struct Called {
    places: BTreeSet<Place>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// All in it counts: hooks start what lies beside and below them.
    Hooks(PathBuf),
    /// The work tree itself, or a folder around it: only what lies in it directly can be a hook.
    HooksAround(PathBuf),
    Settings(PathBuf),
}

impl Called {
    /// What is known to the repositories around these paths, to that of the workspace, and to whoever has this home.
    /// Without git on the machine there is nobody to run a hook.
    pub(super) fn among<'a>(
        paths: impl Iterator<Item = &'a PathBuf>,
        workspace: Option<&Path>,
        home: Option<&Path>,
    ) -> Result<Self, CommitsError> {
        let mut paths = paths.peekable();
        let (Some(_), Some(git)) = (paths.peek(), Git::find()) else { return Ok(Self::default()) };
        let worktrees = worktrees(paths.filter_map(|path| path.parent()).chain(workspace));
        let mut places = BTreeSet::new();
        if worktrees.is_empty() {
            for setting in git.settings(WHAT, NAMES, None, home)? {
                places.extend(places_of(&setting, None));
            }
        }
        for (worktree, git_dir) in &worktrees {
            for setting in git.settings(WHAT, NAMES, Some(git_dir), home)? {
                places.extend(places_of(&setting, Some(worktree)));
            }
        }
        Ok(Self { places })
    }

    /// Why git would run what comes to this path, or believe it; `None` if it would not. A symbolic link brings whatever is
    /// behind it.
    pub(super) fn reason(&self, path: &Path, is_link: bool) -> Option<&'static str> {
        self.places.iter().find_map(|place| {
            let (place, is_meant, reason) = match place {
                Place::Hooks(folder) => (folder, path.starts_with(folder), HOOKS),
                Place::HooksAround(folder) => (folder, path.parent() == Some(folder), HOOKS),
                Place::Settings(file) => (file, path == file, SETTINGS),
            };
            (is_meant || is_link && place.starts_with(path)).then_some(reason)
        })
    }
}

/// The work trees around these folders, each with its git folder.
fn worktrees<'a>(folders: impl Iterator<Item = &'a Path>) -> Vec<(PathBuf, PathBuf)> {
    let mut seen = BTreeSet::new();
    let mut worktrees = Vec::new();
    for folder in folders {
        // What is above a folder that was seen was seen with it.
        for folder in folder.ancestors().take_while(|folder| seen.insert(*folder)) {
            worktrees.extend(git_dir(folder).map(|git_dir| (folder.to_owned(), git_dir)));
        }
    }
    worktrees
}

/// What a setting names, as it is written and with all links followed.
fn places_of(setting: &Setting, worktree: Option<&Path>) -> Vec<Place> {
    let Setting { file, name, value } = setting;
    if value.as_os_str().is_empty() {
        return Vec::new();
    }
    let is_hooks = name == HOOKS_PATH;
    // Git runs hooks at the top of a work tree, and takes what a file includes for its neighbour.
    let base = if is_hooks { worktree } else { file.parent() };
    let Some(path) = base.map(|base| base.join(value)).or_else(|| value.is_absolute().then(|| value.clone()))
    else {
        return Vec::new();
    };
    let place = |path: PathBuf| match worktree {
        _ if !is_hooks => Place::Settings(path),
        Some(worktree) if worktree.starts_with(&path) => Place::HooksAround(path),
        Some(_) | None => Place::Hooks(path),
    };
    [followed(&path), path].map(place).into()
}

/// The same path without symbolic links and `..`, as far as it exists.
fn followed(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        above.canonicalize().ok().map(|above| above.join(rest))
    });
    real.unwrap_or_else(|| path.to_owned())
}

const HOOKS_PATH: &str = "core.hookspath";
/// A file that is not there yet may still be included.
const NAMES: &str = r"^(core\.hookspath|include\.path|includeif\..*\.path)$";
/// Completes "git could not ...".
const WHAT: &str = "say where it looks for hooks (core.hooksPath) and settings (include.path)";
const HOOKS: &str = "git hooks (core.hooksPath names their folder), run at the next commit or push";
const SETTINGS: &str = "git's settings include it: names programs that git runs by itself";
