//! The layers below an upper, merged the way overlayfs merges them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use model::diff::Entry;
use model::files::FileKind;
use rustix::io::Errno;

use super::both::Contents;
use super::error::DiffError;
use super::tree::{Look, Marks, Opaque, Tree};
use crate::capture::files::{Stat, join, split};
use crate::capture::layer::{Flavour, attribute};
use crate::launcher::Rights;
use crate::view::{HiddenKind, Lower, Meta, Part};

#[derive(Debug)]
pub(super) struct Lowers {
    /// Top first.
    layers: Vec<Layer>,
    /// Which of them are the machine itself.
    live: Vec<bool>,
    data: Option<Tree>,
    flavour: Flavour,
}

/// Something as the lowers show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Its path in the lowers, which is not where it is now if a folder above it was moved.
    pub(super) origin: Vec<u8>,
    pub(super) look: Look,
    /// Where it stands; more than one only for a merged folder.
    places: Vec<Place>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    layer: usize,
    path: Vec<u8>,
}

#[derive(Debug)]
enum Layer {
    Folder(Tree),
    /// Made by the launcher where only it can see it, so it is read from the plan.
    Hide(Hide),
}

#[derive(Debug)]
struct Hide {
    entries: BTreeMap<Vec<u8>, HiddenKind>,
    rights: Rights,
}

impl Node {
    /// Its last name in the lowers.
    pub(super) fn name(&self) -> &[u8] {
        split(&self.origin).1
    }
}

impl Lowers {
    pub(super) fn open(
        part: &Part,
        home: &Path,
        rights: Rights,
        flavour: Flavour,
    ) -> Result<Self, DiffError> {
        let layers = part.lowers.iter().map(|lower| Layer::open(lower, home, rights));
        let layers = layers.collect::<Result<_, _>>()?;
        let data = part.data.as_ref().and_then(|data| folder_of(data, home)).map(|path| open_tree(&path));
        let live = part.lowers.iter().map(|lower| matches!(lower, Lower::Machine { .. })).collect();
        Ok(Self { layers, live, data: data.transpose()?, flavour })
    }

    /// The paths at which zeno itself put a file.
    pub(super) fn put_in(&self) -> BTreeSet<Vec<u8>> {
        let hides = self.layers.iter().filter_map(|layer| match layer {
            Layer::Hide(hide) => Some(&hide.entries),
            Layer::Folder(_) => None,
        });
        let files = hides.flatten().filter(|(_, kind)| matches!(kind, HiddenKind::File { .. }));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// What stands at a path, if anything.
    pub(super) fn resolve(&self, path: &[u8]) -> io::Result<Option<Node>> {
        let Some(mut node) = self.root()? else { return Ok(None) };
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            match self.child(&node, name)? {
                Some(child) => node = child,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// What stands in a folder under this name, if anything.
    pub(super) fn child(&self, folder: &Node, name: &[u8]) -> io::Result<Option<Node>> {
        let places = folder.places.iter();
        let places = places.map(|place| Place { layer: place.layer, path: join(&place.path, name) });
        self.merge(places.collect(), join(&folder.origin, name))
    }

    /// All that stands in a folder.
    pub(super) fn children(&self, folder: &Node) -> io::Result<Vec<Node>> {
        let mut names = BTreeSet::new();
        for place in &folder.places {
            names.extend(self.layers[place.layer].names(&place.path)?);
        }
        let nodes = names.into_iter().filter_map(|name| self.child(folder, &name).transpose());
        nodes.collect()
    }

    /// The contents of a file.
    pub(super) fn read(&self, file: &Node) -> io::Result<Box<dyn Read>> {
        self.open_contents(file).map(Contents::reader)
    }

    pub(super) fn open_contents(&self, file: &Node) -> io::Result<Contents> {
        let place = file.places.first().ok_or(Errno::NOENT)?;
        let tree = match &self.layers[place.layer] {
            Layer::Hide(hide) => return Ok(Contents::Bytes(hide.bytes(&place.path))),
            Layer::Folder(tree) => tree,
        };
        let opened = tree.open_entry(&place.path)?;
        if attribute(&opened, self.flavour.metacopy())?.is_none() {
            return Ok(Contents::File(opened.into()));
        }
        // A stub: its bytes are at the same path further down, or at the path it names.
        let redirect = attribute(&opened, self.flavour.redirect())?;
        let path = match redirect {
            Some(redirect) => beside(&place.path, &redirect),
            None => place.path.clone(),
        };
        let below = self.layers[place.layer + 1..].iter().filter_map(Layer::tree).chain(&self.data);
        for tree in below {
            if tree.look(&path)?.is_some_and(|look| look.entry.kind == FileKind::File) {
                return Ok(Contents::File(tree.open_entry(&path)?.into()));
            }
        }
        Err(Errno::NOENT.into())
    }

    /// Opens a file or folder for its attributes; `None` where it is nowhere on disk.
    pub(super) fn open_entry(&self, node: &Node) -> io::Result<Option<std::os::fd::OwnedFd>> {
        match node.places.first().and_then(|place| Some((self.layers[place.layer].tree()?, place))) {
            Some((tree, place)) => tree.open_entry(&place.path).map(Some),
            None => Ok(None),
        }
    }

    /// As the file system has it; `None` where it is nowhere on disk.
    pub(super) fn stat(&self, node: &Node) -> io::Result<Option<Stat>> {
        match node.places.first().and_then(|place| Some((self.layers[place.layer].tree()?, place))) {
            Some((tree, place)) => tree.stat(&place.path),
            None => Ok(None),
        }
    }

    /// Is it, or what is in it, read from the live machine?
    pub(super) fn is_live(&self, node: &Node) -> io::Result<bool> {
        let Some(place) = node.places.first() else { return Ok(false) };
        let Layer::Folder(tree) = &self.layers[place.layer] else { return Ok(false) };
        if self.live[place.layer] || node.look.entry.kind != FileKind::File {
            return Ok(self.live[place.layer]);
        }
        Ok(attribute(tree.open_entry(&place.path)?, self.flavour.metacopy())?.is_some())
    }

    fn root(&self) -> io::Result<Option<Node>> {
        let places = (0..self.layers.len()).map(|layer| Place { layer, path: Vec::new() });
        // An overlay's root is always merged, whatever is noted on it.
        let places: Vec<_> = places.collect();
        for place in &places {
            if let Some(look) = self.layers[place.layer].look(&place.path)? {
                return Ok(Some(Node { origin: Vec::new(), look, places }));
            }
        }
        Ok(None)
    }

    /// What the candidates, top first, make together.
    fn merge(&self, mut candidates: Vec<Place>, origin: Vec<u8>) -> io::Result<Option<Node>> {
        let mut node: Option<Node> = None;
        candidates.reverse();
        while let Some(place) = candidates.pop() {
            let layer = &self.layers[place.layer];
            let Some(look) = layer.look(&place.path)? else { continue };
            let is_folder = look.entry.kind == FileKind::Directory;
            if look.is_whiteout || layer.is_marked_whiteout(&place.path, &look, self.flavour)? {
                break;
            }
            if !is_folder {
                node.get_or_insert(Node { origin, look, places: vec![place] });
                break;
            }
            let marks = layer.marks(&place.path, self.flavour)?;
            if let Some(redirect) = &marks.redirect {
                candidates = match redirect.strip_prefix(b"/") {
                    Some(path) => {
                        let below = place.layer + 1..self.layers.len();
                        below.rev().map(|layer| Place { layer, path: path.to_vec() }).collect()
                    }
                    None => {
                        let moved = candidates.into_iter();
                        moved.map(|below| Place { path: beside(&below.path, redirect), ..below }).collect()
                    }
                };
            }
            match &mut node {
                Some(node) => node.places.push(place),
                None => node = Some(Node { origin: origin.clone(), look, places: vec![place] }),
            }
            if marks.opaque == Opaque::Yes {
                break;
            }
        }
        Ok(node)
    }
}

impl Layer {
    fn open(lower: &Lower, home: &Path, rights: Rights) -> Result<Self, DiffError> {
        match lower {
            Lower::Hide(hides) => {
                let entries = hides.entries().map_err(DiffError::Hidden)?;
                let entries =
                    entries.into_iter().map(|hidden| (hidden.path.into_os_string().into_vec(), hidden.kind));
                Ok(Self::Hide(Hide { entries: entries.collect(), rights }))
            }
            Lower::Machine { .. } | Lower::Store(_) => {
                let path = folder_of(lower, home).expect("only hiding layers have no folder");
                Ok(Self::Folder(open_tree(&path)?))
            }
        }
    }

    fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Folder(tree) => Some(tree),
            Self::Hide(_) => None,
        }
    }

    fn look(&self, path: &[u8]) -> io::Result<Option<Look>> {
        match self {
            Self::Folder(tree) => tree.look(path),
            Self::Hide(hide) => Ok(hide.look(path)),
        }
    }

    fn names(&self, path: &[u8]) -> io::Result<Vec<Box<[u8]>>> {
        match self {
            Self::Folder(tree) => tree.names(path),
            Self::Hide(hide) => Ok(hide.names(path)),
        }
    }

    fn marks(&self, path: &[u8], flavour: Flavour) -> io::Result<Marks> {
        match self {
            Self::Folder(tree) => tree.marks(path, flavour),
            Self::Hide(hide) => Ok(hide.marks(path)),
        }
    }

    fn is_marked_whiteout(&self, path: &[u8], look: &Look, flavour: Flavour) -> io::Result<bool> {
        match self {
            Self::Folder(tree) => is_marked_whiteout(tree, path, look, flavour),
            Self::Hide(_) => Ok(false),
        }
    }
}

/// The other kind of whiteout: an empty file with a mark, in a folder that says it may hold such.
pub(super) fn is_marked_whiteout(
    tree: &Tree,
    path: &[u8],
    look: &Look,
    flavour: Flavour,
) -> io::Result<bool> {
    if look.entry.kind != FileKind::File || look.entry.size > 0 {
        return Ok(false);
    }
    if tree.marks(split(path).0, flavour)?.opaque != Opaque::HasMarkedWhiteouts {
        return Ok(false);
    }
    Ok(attribute(tree.open_entry(path)?, flavour.whiteout())?.is_some())
}

impl Hide {
    fn look(&self, path: &[u8]) -> Option<Look> {
        let entry = |kind, size, meta: &Meta| {
            // An ordinary user's hiding layer is their own, whoever owns what it stands for.
            let (uid, gid) = match self.rights {
                Rights::Root => (meta.uid, meta.gid),
                Rights::User { uid, gid } => (uid, gid),
            };
            Look {
                entry: Entry { kind, size, mode: meta.mode, uid, gid, target: None },
                is_whiteout: false,
                shared: None,
            }
        };
        if path.is_empty() {
            // What the top folder looks like stands in the plan.
            let meta = Meta { mode: 0o755, uid: 0, gid: 0, modified: (0, 0) };
            return Some(entry(FileKind::Directory, 0, &meta));
        }
        match self.entries.get(path)? {
            HiddenKind::Absent => {
                let entry = Entry { kind: FileKind::Device, size: 0, mode: 0, uid: 0, gid: 0, target: None };
                Some(Look { entry, is_whiteout: true, shared: None })
            }
            HiddenKind::Through(meta) | HiddenKind::Empty(meta) => Some(entry(FileKind::Directory, 0, meta)),
            HiddenKind::File { bytes, meta } => Some(entry(FileKind::File, bytes.len() as u64, meta)),
        }
    }

    fn names(&self, path: &[u8]) -> Vec<Box<[u8]>> {
        let inside = self.entries.keys().map(|entry| split(entry));
        inside.filter(|(folder, _)| *folder == path).map(|(_, name)| name.into()).collect()
    }

    fn marks(&self, path: &[u8]) -> Marks {
        let is_empty = matches!(self.entries.get(path), Some(HiddenKind::Empty(_)));
        Marks { opaque: if is_empty { Opaque::Yes } else { Opaque::No }, redirect: None }
    }

    fn bytes(&self, path: &[u8]) -> Vec<u8> {
        match self.entries.get(path) {
            Some(HiddenKind::File { bytes, .. }) => bytes.clone(),
            Some(HiddenKind::Absent | HiddenKind::Through(_) | HiddenKind::Empty(_)) | None => Vec::new(),
        }
    }
}

/// Where a redirect found at `path` leads: from the layer's root, or to a neighbour.
pub(super) fn beside(path: &[u8], redirect: &[u8]) -> Vec<u8> {
    match redirect.strip_prefix(b"/") {
        Some(absolute) => absolute.to_vec(),
        None => join(split(path).0, redirect),
    }
}

fn folder_of(lower: &Lower, home: &Path) -> Option<PathBuf> {
    match lower {
        Lower::Machine { mount, inside } => Some(mount.join(inside)),
        Lower::Store(inside) => Some(home.join(inside)),
        Lower::Hide(_) => None,
    }
}

fn open_tree(path: &Path) -> Result<Tree, DiffError> {
    Tree::open(path).map_err(|source| DiffError::Layer { path: path.to_owned(), source })
}
