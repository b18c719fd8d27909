//! From an upper folder to what differs.

use std::collections::{HashMap, HashSet};
use std::io;

use model::exec::Text;
use model::files::FileKind;

use super::compare;
use super::lowers::{Lowers, Node, beside};
use super::tree::{Look, Opaque};
use super::upper::Upper;
use crate::capture::files::{join, split};
use crate::capture::layer::Flavour;

/// One path that differs.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// In the overlay: where it stands in the upper, or stood below.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Look>,
    /// The bytes, the target or the type differ.
    pub(super) contents: bool,
    pub(super) xattrs: Vec<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Deleted,
    Added,
    Modified,
    /// From where `before` stood.
    Renamed,
    TypeChanged,
}

/// A failed look, and at what.
pub(super) type Failed = (Vec<u8>, io::Error);

#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) upper: &'a Upper,
    pub(super) lowers: &'a Lowers,
    pub(super) flavour: Flavour,
    /// Folders of the lowers that stand elsewhere now.
    pub(super) moved: HashSet<Vec<u8>>,
    /// Names of files that have several, by inode.
    pub(super) linked: HashMap<u64, Vec<Vec<u8>>>,
    pending: Vec<Folder>,
    pub(super) found: Vec<Found>,
    /// What we have no right to read.
    pub(super) unread: Vec<Vec<u8>>,
}

/// A folder of the upper, and the one below it that it stands over.
#[derive(Debug)]
struct Folder {
    path: Vec<u8>,
    before: Option<Node>,
    opaque: Opaque,
}

impl<'a> Walk<'a> {
    pub(super) fn new(upper: &'a Upper, lowers: &'a Lowers, flavour: Flavour) -> Self {
        let (moved, linked, pending, found, unread) = Default::default();
        Self { upper, lowers, flavour, moved, linked, pending, found, unread }
    }

    /// Compares everything below `root`, which stands over `before`.
    pub(super) fn run(&mut self, root: &[u8], before: Option<Node>) -> Result<(), Failed> {
        self.find_moved(root)?;
        let opaque = self.upper.marks(root).map_err(|error| (root.to_vec(), error))?.opaque;
        self.pending.push(Folder { path: root.to_vec(), before, opaque });
        while let Some(folder) = self.pending.pop() {
            let done = self.folder(&folder);
            self.tolerate(&folder.path, done)?;
        }
        Ok(())
    }

    /// Compares the top folder itself, without what is in it.
    pub(super) fn top(&mut self, path: &[u8], before: Option<Node>, now: Look) -> io::Result<()> {
        match before {
            Some(before) => self.note(path, Kind::Modified, Some(before), Some(now)),
            None => Ok(()),
        }
    }

    /// Overlayfs notes on a moved folder where it came from. That place counts as empty, whatever stands there now.
    fn find_moved(&mut self, root: &[u8]) -> Result<(), Failed> {
        if self.flavour == Flavour::User {
            // Without redirects, which `userxattr` forbids, a folder of a lower cannot be moved.
            return Ok(());
        }
        let mut pending = vec![(root.to_vec(), root.to_vec())];
        while let Some((path, origin)) = pending.pop() {
            let done = self.moved_in(&path, &origin, &mut pending);
            self.tolerate(&path, done)?;
        }
        Ok(())
    }

    fn moved_in(
        &mut self,
        path: &[u8],
        origin: &[u8],
        pending: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> io::Result<()> {
        for name in self.upper.names(path)? {
            let child = join(path, &name);
            let Some(look) = self.upper.look(&child)? else { continue };
            if look.entry.kind != FileKind::Directory {
                continue;
            }
            let mut child_origin = join(origin, &name);
            if let Some(redirect) = self.upper.marks(&child)?.redirect {
                child_origin = beside(&child_origin, &redirect);
                self.moved.insert(child_origin.clone());
            }
            pending.push((child, child_origin));
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Folder) -> io::Result<()> {
        let names = self.upper.names(&folder.path)?;
        for name in &names {
            let path = join(&folder.path, name);
            let before = match &folder.before {
                Some(before) => self.lowers.child(before, name)?.filter(|node| !self.is_moved(node)),
                None => None,
            };
            let done = self.entry(&path, before, folder);
            self.tolerate_io(&path, done)?;
        }
        if folder.opaque == Opaque::Yes
            && let Some(before) = &folder.before
        {
            let names: HashSet<_> = names.into_iter().collect();
            for node in self.lowers.children(before)? {
                if !names.contains(node.name()) {
                    self.deleted(&join(&folder.path, node.name()), node.clone())?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &[u8], before: Option<Node>, parent: &Folder) -> io::Result<()> {
        let Some(after) = self.upper.look(path)? else { return Ok(()) };
        if after.is_whiteout {
            return before.map_or(Ok(()), |node| self.deleted(path, node));
        }
        if let Some(inode) = after.shared {
            self.linked.entry(inode).or_default().push(path.to_vec());
        }
        if after.entry.kind != FileKind::Directory {
            self.against(path, before, after)?;
            return Ok(());
        }
        let marks = self.upper.marks(path)?;
        let origin = match (&marks.redirect, &parent.before) {
            (Some(redirect), Some(above)) => Some(beside(&join(&above.origin, split(path).1), redirect)),
            (Some(redirect), None) => redirect.strip_prefix(b"/").map(<[u8]>::to_vec),
            (None, _) => None,
        };
        let source = match origin {
            Some(origin) => self.lowers.resolve(&origin)?,
            None => None,
        };
        let before = match source {
            // It was moved, and moved back.
            Some(source) if source.origin == path => self.against(path, Some(source), after)?,
            Some(source) => {
                // What stood at the new place went away before the move.
                match before {
                    Some(before) if before.look.entry.kind == FileKind::Directory => {
                        self.deleted_below(path, &before)?;
                    }
                    Some(before) => self.deleted(path, before)?,
                    None => {}
                }
                self.note(path, Kind::Renamed, Some(source.clone()), Some(after))?;
                Some(source)
            }
            None => self.against(path, before, after)?,
        };
        self.pending.push(Folder { path: path.to_vec(), before, opaque: marks.opaque });
        Ok(())
    }

    /// Notes how the two differ. Returns what the contents of `path` are to be compared with.
    fn against(&mut self, path: &[u8], before: Option<Node>, after: Look) -> io::Result<Option<Node>> {
        let Some(before) = before else {
            self.note(path, Kind::Added, None, Some(after))?;
            return Ok(None);
        };
        if before.look.entry.kind != after.entry.kind {
            self.deleted_below(path, &before)?;
            self.note(path, Kind::TypeChanged, Some(before), Some(after))?;
            return Ok(None);
        }
        self.note(path, Kind::Modified, Some(before.clone()), Some(after))?;
        Ok(Some(before))
    }

    fn note(&mut self, path: &[u8], kind: Kind, before: Option<Node>, after: Option<Look>) -> io::Result<()> {
        let mut found =
            Found { path: path.to_vec(), kind, before, after, contents: true, xattrs: Vec::new() };
        if matches!(kind, Kind::Modified | Kind::Renamed) {
            if let Err(error) = compare::differences(self, &mut found) {
                if error.kind() != io::ErrorKind::PermissionDenied {
                    return Err(error);
                }
                self.unread.push(path.to_vec());
            }
            if kind == Kind::Modified && !found.differs() {
                return Ok(());
            }
        }
        self.found.push(found);
        Ok(())
    }

    /// Notes that `node`, and all in it, is gone from `path`.
    fn deleted(&mut self, path: &[u8], node: Node) -> io::Result<()> {
        if self.is_moved(&node) {
            return Ok(());
        }
        let is_folder = node.look.entry.kind == FileKind::Directory;
        if is_folder {
            self.deleted_below(path, &node)?;
        }
        self.note(path, Kind::Deleted, Some(node), None)
    }

    fn deleted_below(&mut self, path: &[u8], folder: &Node) -> io::Result<()> {
        let mut pending = vec![(path.to_vec(), folder.clone())];
        while let Some((path, folder)) = pending.pop() {
            if folder.look.entry.kind != FileKind::Directory {
                continue;
            }
            let children = match self.lowers.children(&folder) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.unread.push(path);
                    continue;
                }
                other => other?,
            };
            for node in children {
                if self.is_moved(&node) {
                    continue;
                }
                let path = join(&path, node.name());
                pending.push((path.clone(), node.clone()));
                self.note(&path, Kind::Deleted, Some(node), None)?;
            }
        }
        Ok(())
    }

    fn is_moved(&self, node: &Node) -> bool {
        self.moved.contains(&node.origin)
    }

    fn tolerate(&mut self, path: &[u8], done: io::Result<()>) -> Result<(), Failed> {
        self.tolerate_io(path, done).map_err(|error| (path.to_vec(), error))
    }

    /// A path that vanished is none of ours any more; one we may not read is told.
    fn tolerate_io(&mut self, path: &[u8], done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unread.push(path.to_vec());
                Ok(())
            }
            other => other,
        }
    }
}

impl Found {
    /// Is anything different but the times?
    pub(super) fn differs(&self) -> bool {
        let said = |look: &Look| (look.entry.mode, look.entry.uid, look.entry.gid);
        let before = self.before.as_ref().map(|node| said(&node.look));
        self.contents || !self.xattrs.is_empty() || before != self.after.as_ref().map(said)
    }

    pub(super) fn is_file(&self) -> bool {
        let before = self.before.as_ref().map(|node| &node.look);
        [before, self.after.as_ref()].into_iter().flatten().all(|look| look.entry.kind == FileKind::File)
    }
}
