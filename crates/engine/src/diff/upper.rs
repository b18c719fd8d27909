//! All that a sandbox wrote: its upper folder and the layers sealed below it, as if they were one.
//!
//! They are merged as the kernel would: what stands at a path in the topmost layer that has it hides what is further down,
//! unless both are folders. Here and there a layer says that a folder stands for another one below it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::files::FileKind;
use rustix::io::Errno;

use super::lowers::is_marked_whiteout;
use super::tree::{Look, Marks, Opaque, Tree};
use crate::capture::files::{Stat, join, split};
use crate::capture::layer::Flavour;

#[derive(Debug)]
pub(crate) struct Upper {
    /// Top first.
    layers: Vec<Tree>,
    flavour: Flavour,
    /// The folder that was asked for last: entries are asked for folder by folder.
    last: RefCell<Option<(Vec<u8>, Rc<Found>)>>,
}

/// What stands at a path.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) look: Look,
    /// Where it stands; more than one only for a merged folder. Top first.
    places: Vec<Place>,
    /// Of a folder: what it merges with in what is below all of these.
    through: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Place {
    layer: usize,
    path: Vec<u8>,
}

impl Upper {
    pub(crate) fn open(
        upper: &Path,
        sealed: impl IntoIterator<Item = PathBuf>,
        flavour: Flavour,
    ) -> io::Result<Self> {
        let mut layers = vec![Tree::open(upper)?];
        for path in sealed {
            layers.push(Tree::open(&path)?);
        }
        Ok(Self { layers, flavour, last: RefCell::default() })
    }

    /// Of a sandbox that wrote nothing.
    pub(super) fn nothing(flavour: Flavour) -> Self {
        Self { layers: Vec::new(), flavour, last: RefCell::default() }
    }

    /// The folder and the name under which an entry really stands.
    pub(crate) fn place(&self, path: &[u8]) -> io::Result<(Rc<OwnedFd>, Vec<u8>)> {
        let found = self.find(path)?.ok_or(Errno::NOENT)?;
        let place = found.places.first().ok_or(Errno::NOENT)?;
        let (folder, name) = split(&place.path);
        let folder = self.layers[place.layer].folder(folder)?.ok_or(Errno::NOENT)?;
        Ok((folder, name.to_vec()))
    }

    /// Looks at an entry; `None` if none of the layers has it. The empty path is the root.
    pub(crate) fn look(&self, path: &[u8]) -> io::Result<Option<Look>> {
        Ok(self.find(path)?.map(|found| found.look.clone()))
    }

    /// The names in a folder, in order, so that the same is always told alike; none if it is gone.
    pub(crate) fn names(&self, path: &[u8]) -> io::Result<Vec<Box<[u8]>>> {
        let Some(found) = self.find(path)? else { return Ok(Vec::new()) };
        let mut names = BTreeSet::new();
        for place in &found.places {
            names.extend(self.layers[place.layer].names(&place.path)?);
        }
        Ok(names.into_iter().collect())
    }

    /// How a folder stands to what is below all layers. A whiteout is told by its look, whichever kind it is.
    pub(crate) fn marks(&self, path: &[u8]) -> io::Result<Marks> {
        let Some(found) = self.find(path)? else { return Ok(Marks::default()) };
        let Some(through) = &found.through else {
            return Ok(Marks { opaque: Opaque::Yes, redirect: None });
        };
        let (folder, name) = split(path);
        let parent = if path.is_empty() { None } else { self.find(folder)? };
        let expected = parent.and_then(|parent| Some(join(parent.through.as_ref()?, name)));
        let is_moved = !path.is_empty() && expected.as_ref() != Some(through);
        let redirect = is_moved.then(|| [b"/", through.as_slice()].concat());
        Ok(Marks { opaque: Opaque::No, redirect })
    }

    /// Opens a file or folder for reading its contents and attributes.
    pub(crate) fn open_entry(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let found = self.find(path)?.ok_or(Errno::NOENT)?;
        let place = found.places.first().ok_or(Errno::NOENT)?;
        self.layers[place.layer].open_entry(&place.path)
    }

    /// As the file system has it; `None` if none of the layers has it.
    pub(crate) fn stat(&self, path: &[u8]) -> io::Result<Option<Stat>> {
        match self.find(path)?.as_ref().and_then(|found| found.places.first()) {
            Some(place) => self.layers[place.layer].stat(&place.path),
            None => Ok(None),
        }
    }

    fn find(&self, path: &[u8]) -> io::Result<Option<Rc<Found>>> {
        if let Some((last, found)) = &*self.last.borrow()
            && last == path
        {
            return Ok(Some(found.clone()));
        }
        if self.layers.is_empty() {
            return Ok(None);
        }
        if path.is_empty() {
            return self.root().map(Some);
        }
        let (folder, name) = split(path);
        let Some(parent) = self.find(folder)? else { return Ok(None) };
        if self.last.borrow().as_ref().is_none_or(|(last, _)| last != folder) {
            self.last.replace(Some((folder.to_vec(), parent.clone())));
        }
        Ok(self.child(&parent, name)?.map(Rc::new))
    }

    /// An overlay's root is always merged, whatever is noted on it.
    fn root(&self) -> io::Result<Rc<Found>> {
        let look = self.layers[0].look(b"")?.ok_or(Errno::NOENT)?;
        let places = (0..self.layers.len()).map(|layer| Place { layer, path: Vec::new() }).collect();
        Ok(Rc::new(Found { look, places, through: Some(Vec::new()) }))
    }

    fn child(&self, parent: &Found, name: &[u8]) -> io::Result<Option<Found>> {
        let mut found: Option<Found> = None;
        let places = parent.places.iter().rev();
        let mut candidates: Vec<Place> =
            places.map(|place| Place { layer: place.layer, path: join(&place.path, name) }).collect();
        let mut through = parent.through.as_ref().map(|through| join(through, name));
        while let Some(place) = candidates.pop() {
            let tree = &self.layers[place.layer];
            let Some(mut look) = tree.look(&place.path)? else { continue };
            look.is_whiteout =
                look.is_whiteout || is_marked_whiteout(tree, &place.path, &look, self.flavour)?;
            if look.is_whiteout || look.entry.kind != FileKind::Directory {
                through = None;
                found.get_or_insert(Found { look, places: vec![place], through: None });
                break;
            }
            let marks = tree.marks(&place.path, self.flavour)?;
            if let Some(redirect) = &marks.redirect {
                let lead = |path: &[u8]| super::lowers::beside(path, redirect);
                candidates = if redirect.starts_with(b"/") {
                    let below = (place.layer + 1..self.layers.len()).rev();
                    below.map(|layer| Place { layer, path: lead(b"") }).collect()
                } else {
                    let moved = candidates.into_iter();
                    moved.map(|below| Place { path: lead(&below.path), ..below }).collect()
                };
                through = match through {
                    _ if redirect.starts_with(b"/") => Some(lead(b"")),
                    through => through.map(|through| lead(&through)),
                };
            }
            match &mut found {
                Some(found) => found.places.push(place),
                None => found = Some(Found { look, places: vec![place], through: None }),
            }
            if marks.opaque == Opaque::Yes {
                through = None;
                break;
            }
        }
        Ok(found.map(|found| Found { through, ..found }))
    }
}
