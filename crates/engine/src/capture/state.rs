//! What is known of a frozen root between two passes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, openat};

use super::CaptureError;
use super::files::{Stat, look, open_beneath};
use super::git::{Repository, Rules};
use super::index::{DirId, Index, Name, ROOT, Role};
use super::journal::{Journal, LayerId, Note, Saved, SavedKey};
use super::layer::{Kind, Layer};
use super::pins::Pins;
use super::place::Place;
use super::watch::{Stirred, Watch};

/// How closely a directory is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Its own metadata and these names, each with whether a folder there is to be looked at in depth.
    Names(BTreeMap<Name, bool>),
    /// Everything in it and below.
    Deep,
}

impl Scope {
    pub(super) fn widen(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Deep, _) => {}
            (_, Self::Deep) => *self = Self::Deep,
            (Self::Names(names), Self::Names(more)) => {
                for (name, is_deep) in more {
                    *names.entry(name).or_default() |= is_deep;
                }
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) index: Index,
    /// The layers of the current generation, oldest first.
    pub(super) stack: Vec<LayerId>,
    pub(super) generation: u64,
    /// Entries whose judgement leans on what git's index tracks.
    pub(super) leaning: BTreeSet<(DirId, Name)>,
    /// Absent while nothing was saved yet: then there is nothing to distrust after a crash either.
    journal: Option<Journal>,
    watch: Option<Watch>,
    /// Everything was looked at once since the watch began.
    is_walked: bool,
    late: BTreeMap<DirId, Scope>,
    rules: HashMap<DirId, Option<Arc<Rules>>>,
    repositories: BTreeMap<Vec<u8>, Arc<Repository>>,
    /// Git indexes that fit the copies, as they looked in reality.
    pub(super) fitted: BTreeMap<Vec<u8>, Stat>,
    next_layer: LayerId,
    /// Layers of an earlier daemon: until it is known who uses them, somebody does.
    inherited: BTreeSet<LayerId>,
    pins: Arc<Pins>,
}

impl State {
    /// What an earlier daemon left, or nothing yet.
    pub(super) fn load(place: &Place, pins: &Arc<Pins>) -> io::Result<Self> {
        let inherited: BTreeSet<_> = place.layers()?.into_iter().collect();
        let key = SavedKey::new(&place.path, place.live, &place.masks)?;
        let saved = Journal::load(&place.store, &key)
            .filter(|saved| !saved.stack.is_empty() && saved.stack.iter().all(|id| inherited.contains(id)));
        let watch =
            Watch::start().inspect_err(|error| tracing::warn!(%error, "no watch on a workspace")).ok();
        let next_layer = inherited.last().map_or(1, |last| last + 1);
        let (index, stack, generation, journal) = match saved {
            Some(mut saved) => {
                saved.epoch += 1;
                match Journal::save(&place.store, &saved) {
                    Ok(journal) => (saved.index, saved.stack, saved.generation, Some(journal)),
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
            None => (Index::new(place.role), Vec::new(), 0, None),
        };
        Ok(Self {
            index,
            stack,
            generation,
            leaning: BTreeSet::new(),
            journal,
            watch,
            is_walked: false,
            late: BTreeMap::new(),
            rules: HashMap::new(),
            repositories: BTreeMap::new(),
            fitted: BTreeMap::new(),
            next_layer,
            inherited,
            pins: pins.clone(),
        })
    }

    /// What there is to look at now. Empty: nothing changed.
    pub(super) fn work(&mut self, is_first_round: bool) -> io::Result<BTreeMap<DirId, Scope>> {
        let mut work = std::mem::take(&mut self.late);
        let mut add = |id, scope| match work.entry(id) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(scope);
            }
            std::collections::btree_map::Entry::Occupied(mut occupied) => {
                Scope::widen(occupied.get_mut(), scope)
            }
        };
        let stirred = match &mut self.watch {
            Some(watch) => watch.drain()?,
            None if is_first_round => Stirred::Anything,
            None => Stirred::Dirs(BTreeMap::new()),
        };
        match stirred {
            Stirred::Dirs(dirs) if self.is_walked => {
                dirs.into_iter().for_each(|(id, stir)| add(id, Scope::Names(stir.names)));
            }
            Stirred::Dirs(_) | Stirred::Anything => add(ROOT, Scope::Deep),
        }
        if is_first_round {
            for (id, name) in &self.index.shared {
                add(*id, Scope::Names(BTreeMap::from([(name.clone(), false)])));
            }
        }
        if self.repositories.values().any(|repository| repository.rules_are_stale()) {
            self.rules.clear();
            self.repositories.clear();
            add(ROOT, Scope::Deep);
        }
        // Asked of each, because asking also makes it read its index again.
        let moved = self.repositories.values().filter(|repository| repository.index_moved()).count();
        if moved > 0 {
            for (id, name) in &self.leaning {
                add(*id, Scope::Names(BTreeMap::from([(name.clone(), false)])));
            }
        }
        self.is_walked = true;
        Ok(work)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    pub(super) fn watch_dir(&mut self, id: DirId, dir: impl AsFd, anew: bool) {
        if let Some(watch) = &mut self.watch
            && (anew || !watch.has(id))
            && let Err(error) = watch.add(id, dir)
        {
            tracing::warn!(%error, "no watch on a workspace; it is walked every time");
            self.watch = None;
        }
    }

    /// Looks at this name again next time.
    pub(super) fn look_again(&mut self, dir: DirId, name: &[u8]) {
        let scope = Scope::Names(BTreeMap::from([(name.into(), true)]));
        self.late.entry(dir).or_insert(Scope::Names(BTreeMap::new())).widen(scope);
    }

    pub(super) fn forget(&mut self, dir: DirId, name: &[u8]) {
        for gone in self.index.remove(dir, name) {
            self.rules.remove(&gone);
            let leaning = (gone, Name::default())..(gone + 1, Name::default());
            let leaning: Vec<_> = self.leaning.range(leaning).cloned().collect();
            for key in leaning {
                self.leaning.remove(&key);
            }
            if let Some(watch) = &mut self.watch {
                watch.remove(gone);
            }
        }
    }

    pub(super) fn note(&mut self, note: &Note) -> Result<(), CaptureError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.note(note).map_err(|source| CaptureError::WriteJournal { path: journal.path(), source })
    }

    /// A folder is about to be made in the layer, only to lead to a change.
    pub(super) fn note_lead(&mut self, id: DirId) -> io::Result<()> {
        let path = self.index.path(id);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.note(&Note::Metadata(path)))
    }

    /// Saves the index, where a crash would otherwise cost too much.
    pub(super) fn save(&mut self, place: &Place, when: SaveWhen) -> Result<(), CaptureError> {
        let is_due = match (&self.journal, when) {
            (None, _) => true,
            (Some(journal), SaveWhen::Long) => journal.is_long(),
            (Some(journal), SaveWhen::Changed) => !journal.is_empty(),
        };
        if !is_due || self.stack.is_empty() {
            return Ok(());
        }
        let key = SavedKey::new(&place.path, place.live, &place.masks)
            .map_err(|source| CaptureError::SaveIndex { path: place.store.clone(), source })?;
        let saved = Saved {
            key,
            epoch: self.journal.as_ref().map_or(1, |journal| journal.epoch() + 1),
            generation: self.generation,
            stack: self.stack.clone(),
            index: std::mem::replace(&mut self.index, Index::new(place.role)),
        };
        let journal = Journal::save(&place.store, &saved);
        self.index = saved.index;
        self.journal = Some(journal?);
        Ok(())
    }

    /// The top layer if nobody uses it, else a new one on top; and whether it is new.
    pub(super) fn writable_layer(&mut self, place: &Place) -> io::Result<(Layer, bool)> {
        if let Some(top) = self.stack.last()
            && !self.is_pinned(place, *top)
        {
            return Ok((Layer::open(&place.layer(*top), place.flavour)?, false));
        }
        let kind = if self.stack.is_empty() { Kind::Opaque } else { Kind::Lead };
        let (id, layer) = self.new_layer(place, &kind)?;
        self.set_stack([&*self.stack, &[id]].concat())?;
        if let Some(journal) = &mut self.journal {
            journal.note(&Note::Metadata(Vec::new()))?;
        }
        Ok((layer, true))
    }

    pub(super) fn new_layer(&mut self, place: &Place, kind: &Kind) -> io::Result<(LayerId, Layer)> {
        let id = self.next_layer;
        self.next_layer += 1;
        Ok((id, Layer::create(&place.layer(id), kind, place.flavour)?))
    }

    pub(super) fn set_stack(&mut self, stack: Vec<LayerId>) -> io::Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.note(&Note::Stack(stack.clone()))?;
        }
        self.stack = stack;
        Ok(())
    }

    pub(super) fn is_pinned(&self, place: &Place, layer: LayerId) -> bool {
        (!self.pins.are_known() && self.inherited.contains(&layer)) || self.pins.has(&place.layer(layer))
    }

    /// A new state of the workspace is complete.
    pub(super) fn advance(&mut self) {
        self.generation += 1;
    }

    /// Before a directory is looked at: drops rules that may be out of date. Changed rules concern all below.
    pub(super) fn forget_stale_rules(&mut self, id: DirId, role: Role, scope: Scope) -> Scope {
        if !matches!(role, Role::Work | Role::Ignored) {
            return scope;
        }
        let rules_changed = match &scope {
            Scope::Deep => true,
            Scope::Names(names) => {
                names.contains_key(b".gitignore".as_slice()) || names.contains_key(b".git".as_slice())
            }
        };
        if rules_changed {
            self.rules.remove(&id);
            return Scope::Deep;
        }
        scope
    }

    /// The ignore rules that hold in a directory. `None`: no repository, nothing is ignored.
    pub(super) fn rules(&mut self, place: &Place, id: DirId) -> Option<Arc<Rules>> {
        let mut unread = Vec::new();
        let mut at = id;
        let mut rules = loop {
            if let Some(rules) = self.rules.get(&at) {
                break rules.clone();
            }
            unread.push(at);
            match self.index.dir(at) {
                Some(dir) if at != ROOT => at = dir.parent,
                _ => break None,
            }
        };
        for id in unread.into_iter().rev() {
            rules = self.read_rules(place, id, rules);
            self.rules.insert(id, rules.clone());
        }
        rules
    }

    fn read_rules(&mut self, place: &Place, id: DirId, above: Option<Arc<Rules>>) -> Option<Arc<Rules>> {
        let role = self.index.dir(id)?.role;
        if !matches!(role, Role::Work | Role::Ignored) {
            return None;
        }
        let path = self.index.path(id);
        let Ok(dir) = open_beneath(&place.root, &path) else { return above };
        let rules = read_rules(place, &dir, &path, above);
        match rules.as_ref().map(|rules| &rules.repository).filter(|repository| repository.prefix == path) {
            Some(repository) => self.repositories.insert(path, repository.clone()),
            None => self.repositories.remove(&path),
        };
        rules
    }
}

/// The ignore rules that hold in a directory, below one with the rules `above`.
pub(super) fn read_rules(
    place: &Place,
    dir: &OwnedFd,
    path: &[u8],
    above: Option<Arc<Rules>>,
) -> Option<Arc<Rules>> {
    if look(dir, b".git").is_ok_and(|seen| seen.is_some())
        && let Some(repository) = Repository::at(&place.path.join(OsStr::from_bytes(path)), path)
    {
        let gitignore = read_gitignore(dir);
        return Some(Arc::new(Rules::of_repository(Arc::new(repository), gitignore.as_deref())));
    }
    let above = above?;
    Some(match read_gitignore(dir) {
        Some(text) => Arc::new(Rules::below(&above, path, &text)),
        None => above,
    })
}

/// When is saving worth its while?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveWhen {
    /// The journal has grown long.
    Long,
    /// Anything changed at all.
    Changed,
}

/// Like git, only a real file: a symlink is not followed.
fn read_gitignore(dir: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(dir, c".gitignore", flags, Mode::empty()).ok()?;
    let mut text = Vec::new();
    match std::fs::File::from(file).take(LARGEST_GITIGNORE).read_to_end(&mut text) {
        Ok(_) => Some(text),
        Err(error) => {
            tracing::debug!(%error, "a .gitignore that cannot be read is passed over");
            None
        }
    }
}

const LARGEST_GITIGNORE: u64 = 16 * 1024 * 1024;
