//! What was and what is, path by path, each within reach: for whoever carries the changes elsewhere.
//!
//! Here nothing is renamed. What moved is gone from one path and new at another, with all that came along, so that every
//! path stands for itself and the answer is the same whether or not the overlay could note a move.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::diff::Entry;
use model::files::FileKind;

use super::compare::{attributes, open_upper};
use super::lowers::Node;
use super::part::{PartDiff, Role};
use super::report::git_folder;
use super::tree::Look;
use super::walk::{Found, Kind};
use super::{Comparison, DiffError};
use crate::capture::files::{Stat, join};
use crate::capture::layer::attribute;

/// One path that is not as it was.
#[derive(Debug)]
pub(crate) struct Both<'a> {
    pub(crate) area: Area,
    pub(crate) before: Option<Version<'a>>,
    pub(crate) after: Option<Version<'a>>,
}

/// Where a path lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    Workspace,
    /// In the workspace, but git would leave it out of a commit.
    Ignored,
    Machine,
    /// Git's own.
    Git,
}

/// Something as it stood, or stands, at a path.
#[derive(Clone, Debug)]
pub(crate) struct Version<'a> {
    part: &'a PartDiff,
    pub(crate) entry: Entry,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// What the sandbox wrote, at this path of the overlay.
    Written(Vec<u8>),
    /// What it started from.
    Below(Node),
}

/// A file with several names, by its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Shared {
    Written(u64),
    /// It came along with a folder that was moved.
    Below(u64),
}

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Contents {
    File(File),
    /// Of a file that zeno put in: it stands in the plan.
    Bytes(Vec<u8>),
}

impl Contents {
    pub(crate) fn reader(self) -> Box<dyn Read> {
        match self {
            Self::File(file) => Box::new(file),
            Self::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
        }
    }
}

impl Comparison {
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// Everything that differs, by absolute path.
    pub(crate) fn both(&self) -> Result<BTreeMap<PathBuf, Both<'_>>, DiffError> {
        self.both_in(Path::new("/"))
    }

    /// The same, but only of what stands, or stood, in this folder.
    pub(crate) fn both_in(&self, folder: &Path) -> Result<BTreeMap<PathBuf, Both<'_>>, DiffError> {
        let mut both = BTreeMap::new();
        for part in &self.parts {
            let listed: HashSet<&[u8]> = part.found.iter().map(|found| found.path.as_slice()).collect();
            for found in part.found.iter().filter(|found| part.touches(found, folder)) {
                let failed =
                    |source| DiffError::Compare { path: part.absolute(part.shown(&found.path)), source };
                Paths { part, listed: &listed, both: &mut both }.add(found).map_err(failed)?;
            }
        }
        Ok(both)
    }

    /// Absolute paths that could not be read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = PathBuf> {
        self.parts.iter().flat_map(|part| part.unread.iter().map(|path| part.absolute(part.shown(path))))
    }

    /// A folder that stands at the same path before and after, on both sides; `None` if the sandbox did not touch it.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<Option<(Version<'_>, Version<'_>)>> {
        let Some((part, path)) = self.part_of(path) else { return Ok(None) };
        let Some(look) = part.upper.look(&path)? else { return Ok(None) };
        let Some(node) = part.lowers.resolve(&path)? else { return Ok(None) };
        Ok(Some((Version::of_node(part, node), Version::written(part, &path, &look))))
    }

    /// What stood at a path before, whether or not the sandbox touched it. Nothing, where the sandbox never wrote at all.
    pub(crate) fn before(&self, path: &Path) -> io::Result<Option<Version<'_>>> {
        let Some((part, path)) = self.part_of(path) else { return Ok(None) };
        Version::below(part, &path)
    }

    /// Both sides of what the sandbox wrote at a path, whether or not that changed anything.
    pub(crate) fn written(&self, path: &Path) -> io::Result<Option<Both<'_>>> {
        let Some((part, path)) = self.part_of(path) else { return Ok(None) };
        let Some(look) = part.upper.look(&path)?.filter(|look| !look.is_whiteout) else { return Ok(None) };
        let (before, after) = (Version::below(part, &path)?, Version::written(part, &path, &look));
        Ok(Some(Both { area: area(part, &path), before, after: Some(after) }))
    }

    /// What the workspace started from at a path, even where the sandbox never wrote at all.
    pub(super) fn started_from(&self, path: &Path) -> io::Result<Option<Version<'_>>> {
        let is_in = |part: &&PartDiff| part.role == Role::Workspace && path.starts_with(&part.mountpoint);
        match self.parts.iter().chain(&self.unwritten).find(is_in) {
            Some(part) => Version::below(part, &part.inside(path)),
            None => Ok(None),
        }
    }

    /// The part in which an absolute path lies, and the path there.
    fn part_of(&self, path: &Path) -> Option<(&PartDiff, Vec<u8>)> {
        let parts = self.parts.iter().filter(|part| path.starts_with(&part.mountpoint));
        let part = parts.max_by_key(|part| part.mountpoint.components().count())?;
        Some((part, part.inside(path)))
    }
}

/// Where one part's paths are gathered.
struct Paths<'a, 'b> {
    part: &'a PartDiff,
    listed: &'b HashSet<&'a [u8]>,
    both: &'b mut BTreeMap<PathBuf, Both<'a>>,
}

impl<'a> Paths<'a, '_> {
    fn add(&mut self, found: &'a Found) -> io::Result<()> {
        if let Some(node) = &found.before {
            self.was(node);
        }
        if let Some(look) = &found.after {
            self.is(&found.path, Version::written(self.part, &found.path, look));
        }
        match (&found.before, found.kind) {
            (Some(node), Kind::Renamed) if node.look.entry.kind == FileKind::Directory => {
                self.along(&found.path, node)
            }
            _ => Ok(()),
        }
    }

    /// What came along with a moved folder and is not told of by itself.
    fn along(&mut self, path: &[u8], folder: &Node) -> io::Result<()> {
        let part = self.part;
        let mut pending = vec![(path.to_vec(), folder.clone())];
        while let Some((path, folder)) = pending.pop() {
            for node in part.children_before(&folder)? {
                let path = join(&path, node.name());
                self.was(&node);
                let written = part.upper.look(&path)?;
                if written.as_ref().is_some_and(|look| look.is_whiteout) {
                    // It went on, and was found elsewhere.
                    continue;
                }
                let is_folder = node.look.entry.kind == FileKind::Directory;
                if is_folder && (written.is_none() || part.is_merged(&path)?) {
                    pending.push((path.clone(), node.clone()));
                }
                if !self.listed.contains(path.as_slice()) {
                    // What the sandbox wrote without changing more than its time has that time.
                    let version = match written {
                        Some(look) => Version::written(part, &path, &look),
                        None => Version::of_node(part, node),
                    };
                    self.is(&path, version);
                }
            }
        }
        Ok(())
    }

    fn was(&mut self, node: &Node) {
        let version = Version::of_node(self.part, node.clone());
        self.at(&node.origin).before.get_or_insert(version);
    }

    fn is(&mut self, path: &[u8], version: Version<'a>) {
        self.at(path).after.get_or_insert(version);
    }

    fn at(&mut self, path: &[u8]) -> &mut Both<'a> {
        let area = area(self.part, path);
        let absolute = self.part.absolute(self.part.shown(path));
        self.both.entry(absolute).or_insert(Both { area, before: None, after: None })
    }
}

fn area(part: &PartDiff, path: &[u8]) -> Area {
    match part.role {
        Role::Machine => Area::Machine,
        Role::Git => Area::Git,
        Role::Workspace if git_folder(part, path).is_some() => Area::Git,
        Role::Workspace if part.ignores(path) => Area::Ignored,
        Role::Workspace => Area::Workspace,
    }
}

impl<'a> Version<'a> {
    /// What stands below everything that was written, at a path of the overlay.
    fn below(part: &'a PartDiff, path: &[u8]) -> io::Result<Option<Self>> {
        Ok(part.lowers.resolve(path)?.map(|node| Self::of_node(part, node)))
    }

    fn of_node(part: &'a PartDiff, node: Node) -> Self {
        Self { part, entry: node.look.entry.clone(), source: Source::Below(node) }
    }

    fn written(part: &'a PartDiff, path: &[u8], look: &Look) -> Self {
        Self { part, entry: look.entry.clone(), source: Source::Written(path.to_vec()) }
    }

    /// Both sides of something that differs.
    pub(super) fn of(part: &'a PartDiff, found: &Found) -> (Option<Self>, Option<Self>) {
        let before = found.before.clone().map(|node| Self::of_node(part, node));
        (before, found.after.as_ref().map(|look| Self::written(part, &found.path, look)))
    }
}

impl Version<'_> {
    /// Are both one file on disk? A layer that was made of others shares its files with them.
    pub(super) fn is_one_with(&self, other: &Self) -> io::Result<bool> {
        match (&self.source, &other.source) {
            (Source::Written(_), Source::Written(_)) => {
                let (one, other) = (self.stat()?, other.stat()?);
                Ok(one.is_some() && one == other)
            }
            (Source::Written(_) | Source::Below(_), _) => Ok(false),
        }
    }

    /// The folder of git's own in which it lies.
    pub(super) fn git_folder(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Written(path) => git_folder(self.part, path),
            Source::Below(node) => git_folder(self.part, &node.origin),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.entry.kind == FileKind::File
    }

    pub(super) fn read(&self) -> io::Result<Box<dyn Read>> {
        self.contents().map(Contents::reader)
    }

    /// The contents of a file.
    pub(crate) fn contents(&self) -> io::Result<Contents> {
        match &self.source {
            Source::Written(path) => open_upper(&self.part.upper, &self.part.lowers, self.part.flavour, path),
            Source::Below(node) => self.part.lowers.open_contents(node),
        }
    }

    /// Extended attributes, names and values.
    pub(crate) fn attributes(&self) -> io::Result<BTreeMap<CString, Vec<u8>>> {
        if !matches!(self.entry.kind, FileKind::File | FileKind::Directory) {
            return Ok(BTreeMap::new());
        }
        let opened = match &self.source {
            Source::Written(path) => Some(self.part.upper.open_entry(path)?),
            Source::Below(node) => self.part.lowers.open_entry(node)?,
        };
        opened.map_or_else(|| Ok(BTreeMap::new()), |opened| attributes(&opened))
    }

    /// As the file system has it; `None` where it is nowhere on disk.
    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        match &self.source {
            Source::Written(path) => self.part.upper.stat(path),
            Source::Below(node) => self.part.lowers.stat(node),
        }
    }

    /// Which file it is, where it has several names. All that a sandbox writes is on one file system.
    pub(crate) fn shared(&self) -> io::Result<Option<Shared>> {
        if !self.is_file() {
            return Ok(None);
        }
        let stat = self.stat()?.filter(|stat| stat.nlink > 1);
        Ok(stat.map(|stat| match &self.source {
            Source::Written(_) => Shared::Written(stat.ino),
            Source::Below(_) => Shared::Below(stat.ino),
        }))
    }

    /// The absolute paths of all names that the sandbox gave this file; none if it has only one.
    pub(crate) fn names(&self) -> io::Result<Vec<PathBuf>> {
        let Some(Shared::Written(inode)) = self.shared()? else { return Ok(Vec::new()) };
        let names = self.part.linked.get(&inode).filter(|names| names.len() > 1).into_iter().flatten();
        Ok(names.map(|path| self.part.absolute(self.part.shown(path))).collect())
    }

    /// Where it lies in the layers, if it is all there: of a file whose bytes were left below, only its looks are.
    pub(crate) fn sealed(&self) -> io::Result<Option<(Rc<OwnedFd>, Vec<u8>)>> {
        let Source::Written(path) = &self.source else { return Ok(None) };
        if self.entry.kind == FileKind::File {
            let opened = self.part.upper.open_entry(path)?;
            if attribute(&opened, self.part.flavour.metacopy())?.is_some() {
                return Ok(None);
            }
        }
        self.part.upper.place(path).map(Some)
    }

    /// Is it read from the live machine, so that it may have changed since the sandbox was made?
    pub(crate) fn is_live(&self) -> io::Result<bool> {
        match &self.source {
            Source::Written(_) => Ok(false),
            Source::Below(node) => self.part.lowers.is_live(node),
        }
    }
}
