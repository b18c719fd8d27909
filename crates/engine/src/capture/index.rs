//! The stat index: what of the workspace the layers hold, as it was when it was copied.
//!
//! A flat table of directories, so that neither depth nor saving it needs recursion. A directory's number is
//! always higher than its parent's and is never given twice.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::files::{Stat, join, split};
use super::fit::Print;

pub(super) type Name = Box<[u8]>;
pub(super) type DirId = u32;
pub(super) const ROOT: DirId = 0;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Index {
    dirs: Vec<Option<Dir>>,
    /// Entries that deserve a word to the user: masked, missing, flawed or read live.
    #[serde(skip)]
    pub(super) notable: BTreeSet<(DirId, Name)>,
    /// Files with several names: a write through another name raises no event here.
    #[serde(skip)]
    pub(super) shared: BTreeSet<(DirId, Name)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dir {
    pub(super) parent: DirId,
    pub(super) name: Name,
    pub(super) role: Role,
    pub(super) stat: Stat,
    pub(super) entries: BTreeMap<Name, Entry>,
}

/// What a directory is to git, which decides how its entries are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    Work,
    /// Git ignores it, but it is captured: it holds tracked files, or the engine cannot show it live.
    Ignored,
    /// The top of a git directory.
    Git,
    GitInside,
    GitRefs,
    /// `worktrees` and `modules`: each folder below is a git directory.
    GitDirs,
    GitObjects,
    GitFanout,
    GitPack,
    GitLfs,
    GitLfsObjects,
}

/// How an entry of a captured directory is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entry {
    Dir(DirId),
    File {
        stat: Stat,
        /// Of the copy.
        print: Print,
        flaw: Option<Flaw>,
    },
    /// An immutable git object, hard-linked.
    Linked(Stat),
    /// Size and metadata only; the bytes are read live.
    Stub(Stat),
    Symlink(Stat),
    Fifo(Stat),
    /// An ignored folder, read live.
    Live(Stat),
    /// A secret, left out. The number is its place in the mask list.
    Masked(u32),
    Absent {
        why: Absence,
        stat: Stat,
    },
    /// A crash may have left anything here: to be captured again whatever it looks like.
    Unknown,
}

/// Captured, but not perfectly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    /// It kept changing while it was copied.
    Torn,
    /// Owner or extended attributes could not be copied.
    Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Absence {
    Socket,
    Device,
    Unreadable,
    /// An ignored file too large to copy.
    Large,
    /// Another file system is mounted here.
    Mount,
    /// Git's lock files and sockets, which belong to running processes. Nothing to tell.
    Transient,
}

impl Index {
    pub(super) fn new(role: Role) -> Self {
        let root = Dir {
            parent: ROOT,
            name: Name::default(),
            role,
            stat: Stat::default(),
            entries: BTreeMap::new(),
        };
        Self { dirs: vec![Some(root)], notable: BTreeSet::new(), shared: BTreeSet::new() }
    }

    /// Fills in what is not saved. Call after loading.
    pub(super) fn complete(&mut self) {
        for (id, dir) in (0..).zip(&self.dirs) {
            for (name, entry) in dir.iter().flat_map(|dir| &dir.entries) {
                note(&mut self.notable, &mut self.shared, id, name, entry);
            }
        }
    }

    pub(super) fn dir(&self, id: DirId) -> Option<&Dir> {
        self.dirs.get(id as usize)?.as_ref()
    }

    pub(super) fn dir_mut(&mut self, id: DirId) -> Option<&mut Dir> {
        self.dirs.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn dirs(&self) -> impl Iterator<Item = (DirId, &Dir)> {
        (0..).zip(&self.dirs).filter_map(|(id, dir)| Some((id, dir.as_ref()?)))
    }

    pub(super) fn entry(&self, dir: DirId, name: &[u8]) -> Option<&Entry> {
        self.dir(dir)?.entries.get(name)
    }

    /// The entry at a path from the root.
    pub(super) fn at(&self, path: &[u8]) -> Option<&Entry> {
        let (folder, name) = split(path);
        self.entry(self.find(folder)?, name)
    }

    /// The path from the root, without a leading slash; empty for the root.
    pub(super) fn path(&self, mut id: DirId) -> Vec<u8> {
        let mut names = Vec::new();
        while let Some(dir) = self.dir(id).filter(|_| id != ROOT) {
            names.push(&*dir.name);
            id = dir.parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    pub(super) fn path_of(&self, dir: DirId, name: &[u8]) -> Vec<u8> {
        join(&self.path(dir), name)
    }

    /// The directory at `path`, if it is a captured one.
    pub(super) fn find(&self, path: &[u8]) -> Option<DirId> {
        let mut at = ROOT;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            match self.entry(at, name)? {
                Entry::Dir(id) => at = *id,
                _ => return None,
            }
        }
        Some(at)
    }

    /// Sets an entry that is not a directory. A directory that stood there must have been removed before.
    pub(super) fn set(&mut self, dir: DirId, name: &[u8], entry: Entry) {
        let key = (dir, Name::from(name));
        self.notable.remove(&key);
        self.shared.remove(&key);
        note(&mut self.notable, &mut self.shared, dir, name, &entry);
        if let Some(dir) = self.dir_mut(dir) {
            dir.entries.insert(name.into(), entry);
        }
    }

    pub(super) fn add_dir(&mut self, parent: DirId, name: &[u8], role: Role) -> DirId {
        let id = DirId::try_from(self.dirs.len()).expect("fewer than 2^32 directories");
        let stat = Stat::default();
        self.dirs.push(Some(Dir { parent, name: name.into(), role, stat, entries: BTreeMap::new() }));
        self.set(parent, name, Entry::Dir(id));
        id
    }

    /// Forgets an entry and all below it. Returns the directories that went.
    pub(super) fn remove(&mut self, dir: DirId, name: &[u8]) -> Vec<DirId> {
        let mut gone = Vec::new();
        let removed = self.dir_mut(dir).and_then(|dir| dir.entries.remove(name));
        let key = (dir, Name::from(name));
        self.notable.remove(&key);
        self.shared.remove(&key);
        if let Some(Entry::Dir(child)) = removed {
            self.take_dir(child, &mut gone);
        }
        gone
    }

    fn take_dir(&mut self, first: DirId, gone: &mut Vec<DirId>) {
        let mut pending = vec![first];
        while let Some(id) = pending.pop() {
            let Some(dir) = self.dirs.get_mut(id as usize).and_then(Option::take) else { continue };
            gone.push(id);
            for (name, entry) in dir.entries {
                if let Entry::Dir(child) = entry {
                    pending.push(child);
                }
                let key = (id, name);
                self.notable.remove(&key);
                self.shared.remove(&key);
            }
        }
    }

    /// Marks what a crash may have left half done.
    pub(super) fn distrust(&mut self, path: &[u8]) {
        let (folder, name) = split(path);
        if let Some(dir) = self.find(folder) {
            self.remove(dir, name);
            self.set(dir, name, Entry::Unknown);
            self.distrust_metadata(folder);
        }
    }

    pub(super) fn distrust_metadata(&mut self, path: &[u8]) {
        if let Some(dir) = self.find(path).and_then(|id| self.dir_mut(id)) {
            dir.stat = dir.stat.distrusted();
        }
    }
}

fn note(
    notable: &mut BTreeSet<(DirId, Name)>,
    shared: &mut BTreeSet<(DirId, Name)>,
    dir: DirId,
    name: &[u8],
    entry: &Entry,
) {
    let is_notable = match entry {
        Entry::File { flaw, .. } => flaw.is_some(),
        Entry::Absent { why, .. } => *why != Absence::Transient,
        Entry::Masked(_) | Entry::Live(_) => true,
        Entry::Dir(_)
        | Entry::Linked(_)
        | Entry::Stub(_)
        | Entry::Symlink(_)
        | Entry::Fifo(_)
        | Entry::Unknown => false,
    };
    if is_notable {
        notable.insert((dir, name.into()));
    }
    if matches!(entry, Entry::File { stat, .. } | Entry::Stub(stat) if stat.nlink > 1) {
        shared.insert((dir, name.into()));
    }
}
