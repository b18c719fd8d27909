//! What git knows of a directory: where its repository keeps its files, what it tracks, what it ignores.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use super::files::{Stat, join, look};

/// Finds the git worktree around `path`, if there is one.
#[must_use]
pub fn worktree_around(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    path.ancestors().find(|folder| git_dir(folder).is_some()).map(Path::to_owned)
}

/// The git directory of the worktree at `folder`: `.git` itself, or what it points to.
pub(crate) fn git_dir(folder: &Path) -> Option<PathBuf> {
    let entry = folder.join(".git");
    let metadata = entry.symlink_metadata().ok()?;
    if metadata.is_dir() {
        return entry.join("HEAD").symlink_metadata().is_ok().then_some(entry);
    }
    pointed_to(folder, &entry, b"gitdir:")
}

/// The directory outside of `workspace` that its git directory belongs to: that of linked worktrees and submodules.
pub(super) fn foreign_git_dir(workspace: &Path) -> Option<PathBuf> {
    let common = common_dir(&git_dir(workspace)?);
    (!common.starts_with(workspace)).then_some(common)
}

/// Where a git directory keeps what it shares with other worktrees: elsewhere, if it is that of a linked one.
pub(crate) fn common_dir(git_dir: &Path) -> PathBuf {
    pointed_to(git_dir, &git_dir.join("commondir"), b"").unwrap_or_else(|| git_dir.to_owned())
}

/// Reads a file that holds a path, and resolves it against `base`.
fn pointed_to(base: &Path, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let text = std::fs::read(file).ok()?;
    let path = text.strip_prefix(prefix)?.trim_ascii();
    base.join(OsStr::from_bytes(path)).canonicalize().ok().filter(|path| path.is_dir())
}

/// A repository whose worktree begins at some directory of the workspace.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The worktree's path from the workspace's root.
    pub(super) prefix: Vec<u8>,
    git_dir: PathBuf,
    exclude: Vec<Gitignore>,
    rules_seen: Vec<(PathBuf, Option<Stat>)>,
    tracked: Mutex<Tracked>,
}

/// The git index as it was read last.
#[derive(Debug, Default)]
struct Tracked {
    seen: Option<Stat>,
    state: Option<gix_index::File>,
}

impl Repository {
    /// The repository whose worktree is `folder`, which has the path `prefix` in the workspace.
    pub(crate) fn at(folder: &Path, prefix: &[u8]) -> Option<Self> {
        let git_dir = git_dir(folder)?;
        let common = common_dir(&git_dir);
        // Later rules win over earlier ones, so the personal list comes last here: it is asked last.
        let sources: Vec<_> =
            [Some(common.join("info/exclude")), gitconfig_excludes_path()].into_iter().flatten().collect();
        let rules_seen = sources.iter().map(|path| (path.clone(), look_path(path))).collect();
        let exclude = sources.iter().filter_map(|path| rules(&std::fs::read(path).ok()?, prefix)).collect();
        Some(Self { prefix: prefix.to_vec(), git_dir, exclude, rules_seen, tracked: Mutex::default() })
    }

    /// Have the rules outside of the worktree changed since they were read?
    pub(super) fn rules_are_stale(&self) -> bool {
        self.rules_seen.iter().any(|(path, seen)| look_path(path) != *seen)
    }

    /// Has git's index changed since it was read? Reads it again the next time it is asked for.
    pub(super) fn index_moved(&self) -> bool {
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = look_path(&self.git_dir.join("index"));
        let moved = tracked.seen.is_some() && tracked.seen != Some(now.unwrap_or_default());
        if moved {
            *tracked = Tracked::default();
        }
        moved
    }

    /// Does git track this file, or anything below this folder? The path is the workspace's.
    pub(crate) fn tracks(&self, path: &[u8], is_dir: bool) -> bool {
        let Some(path) = path.strip_prefix(&*self.prefix) else { return false };
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        if tracked.seen.is_none() {
            *tracked = self.read_index();
        }
        let Some(state) = &tracked.state else { return false };
        if is_dir {
            state.prefixed_entries_range(join(path, b"").as_slice().into()).is_some()
        } else {
            state.entry_by_path(path.into()).is_some()
        }
    }

    fn read_index(&self) -> Tracked {
        let path = self.git_dir.join("index");
        // Looked at before it is read: a change in between is then noticed next time.
        let seen = Some(look_path(&path).unwrap_or_default());
        let options = gix_index::decode::Options { thread_limit: Some(1), ..Default::default() };
        let state = match gix_index::File::at(&path, gix_index::hash::Kind::Sha1, true, options) {
            Ok(state) => Some(state),
            Err(error) => {
                tracing::debug!(path = %path.display(), ?error, "no git index to read; nothing counts as tracked");
                None
            }
        };
        Tracked { seen, state }
    }
}

/// The ignore rules that hold in one directory, and what they lean on.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Self>>,
    own: Option<Gitignore>,
    pub(super) repository: Arc<Repository>,
}

impl Rules {
    pub(crate) fn of_repository(repository: Arc<Repository>, gitignore: Option<&[u8]>) -> Self {
        let own = gitignore.and_then(|text| rules(text, &repository.prefix));
        Self { above: None, own, repository }
    }

    pub(crate) fn below(above: &Arc<Self>, path: &[u8], gitignore: &[u8]) -> Self {
        Self { own: rules(gitignore, path), repository: above.repository.clone(), above: Some(above.clone()) }
    }

    /// Do the rules ignore this path? The folder it stands in is not ignored itself.
    pub(crate) fn ignore(&self, path: &[u8], is_dir: bool) -> bool {
        let path = rooted(path);
        let mut next = Some(self);
        let mut lists = std::iter::from_fn(|| {
            let rules = next?;
            next = rules.above.as_deref();
            Some(rules.own.as_ref())
        });
        let lists = lists.by_ref().flatten().chain(&self.repository.exclude);
        for list in lists {
            match list.matched(&path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn rules(text: &[u8], folder: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(rooted(folder));
    for line in String::from_utf8_lossy(text).lines() {
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(line, %error, "an ignore rule that cannot be read is passed over");
        }
    }
    match builder.build() {
        Ok(rules) => (!rules.is_empty()).then_some(rules),
        Err(error) => {
            tracing::debug!(%error, "ignore rules that cannot be built are passed over");
            None
        }
    }
}

/// The matcher wants paths below its own root; the workspace's root is `/` to it.
fn rooted(path: &[u8]) -> PathBuf {
    Path::new(Component::RootDir.as_os_str()).join(OsStr::from_bytes(path))
}

fn look_path(path: &Path) -> Option<Stat> {
    let seen: io::Result<_> = look(rustix::fs::CWD, path.as_os_str().as_bytes());
    seen.ok().flatten().map(|seen| seen.stat)
}
