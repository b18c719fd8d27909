//! One frozen directory: a worktree, or the git directory it belongs to. Everything about it happens under one lock.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use model::Caveat;
use model::mask::NameMask;
use model::sandbox::Masked;
use rustix::fs::Mode;

use super::absorb::{How, absorb};
use super::files::{DIRECTORY, remove_tree};
use super::fit::GitIndex;
use super::index::{DirId, Index, Role};
use super::journal::{LayerId, Note};
use super::layer::{Kind, Layer};
use super::pins::{Holder, Pins};
use super::place::{EXTRAS, Place};
use super::state::{SaveWhen, Scope, State};
use super::{CaptureError, Live, Progress, Step, count, pass, report};

#[derive(Debug)]
pub(super) struct Root {
    inner: Mutex<Inner>,
    pins: Arc<Pins>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    /// Absent before the first look, and after a failure: then what is on disk is looked at anew.
    state: Option<State>,
}

/// A pinned state of one root.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) generation: u64,
    /// Newest first.
    pub(super) layers: Vec<PathBuf>,
    pub(super) caveats: Vec<Caveat>,
    pub(super) masked: Vec<Masked>,
}

impl Root {
    pub(super) fn open(
        path: &Path,
        role: Role,
        live: Live,
        masks: &[NameMask],
        store: &Path,
        pins: &Arc<Pins>,
    ) -> io::Result<Self> {
        let place = Place::open(path, role, live, masks, store)?;
        Ok(Self { inner: Mutex::new(Inner { place, state: None }), pins: pins.clone() })
    }

    /// Brings the copy up to date and pins it for `holder`.
    pub(super) fn freeze(
        &self,
        holder: Holder,
        unmask: &[String],
        git: Option<&GitIndex<'_>>,
        tell: &dyn Fn(Step),
    ) -> Result<Pinned, CaptureError> {
        let mut inner = self.lock();
        let (place, state) = inner.sync(&self.pins, git, tell)?;
        let mut layers: Vec<_> = state.stack.iter().rev().map(|id| place.layer(*id)).collect();
        let shown = report::unmasked(place, state, unmask);
        if !shown.is_empty() {
            let extra = super::extra::make(place, holder, &shown)?;
            layers.insert(0, extra);
        }
        self.pins.add(holder, &layers);
        let caveats = report::caveats(place, state);
        let masked = report::masked(place, state, &shown);
        Ok(Pinned { generation: state.generation, layers, caveats, masked })
    }

    /// Pins these layers (newest first) for `holder`, if they are the present ones.
    pub(super) fn adopt_current(&self, holder: Holder, layers: &[PathBuf]) -> bool {
        let inner = self.lock();
        let Some(state) = &inner.state else { return false };
        let is_current = state.stack.iter().rev().map(|id| inner.place.layer(*id)).eq(layers.iter().cloned());
        if is_current {
            self.pins.add(holder, layers);
        }
        is_current
    }

    /// Which paths differ between `layers` (newest first) and reality.
    pub(super) fn behind(&self, layers: &[PathBuf], cap: usize) -> Result<(Vec<PathBuf>, u64), CaptureError> {
        let mut inner = self.lock();
        let (place, state) = inner.sync(&self.pins, None, &|_| ())?;
        report::behind(place, state, layers, cap)
    }

    /// Removes and merges what nobody uses any more.
    pub(super) fn tidy(&self) -> Result<(), CaptureError> {
        let mut inner = self.lock();
        let mut state = inner.state(&self.pins)?;
        fold(&inner.place, &mut state, &self.pins)
            .map_err(|source| CaptureError::MergeLayers { path: inner.place.store.clone(), source })?;
        inner.state = Some(state);
        Ok(())
    }

    /// Saves what a restart would otherwise have to find out again.
    pub(super) fn save(&self) -> Result<(), CaptureError> {
        let mut inner = self.lock();
        let Inner { place, state } = &mut *inner;
        state.as_mut().map_or(Ok(()), |state| state.save(place, SaveWhen::Changed))
    }

    /// Shows what is captured to `look`, and that it is nothing if there is nothing yet.
    pub(super) fn with_index<T>(&self, look: impl FnOnce(&Index) -> Option<T>) -> Option<T> {
        look(&self.lock().state.as_ref()?.index)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| {
            // Whoever panicked left the state half changed; the disk knows.
            let mut inner = PoisonError::into_inner(poisoned);
            inner.state = None;
            inner
        })
    }
}

impl Inner {
    /// Takes the state out: only a success puts it back.
    fn state(&mut self, pins: &Arc<Pins>) -> Result<State, CaptureError> {
        let path = || self.place.store.clone();
        match self.state.take() {
            Some(state) => Ok(state),
            None => State::load(&self.place, pins)
                .map_err(|source| CaptureError::OpenStore { path: path(), source }),
        }
    }

    fn sync(
        &mut self,
        pins: &Arc<Pins>,
        git: Option<&GitIndex<'_>>,
        tell: &dyn Fn(Step),
    ) -> Result<(&Place, &mut State), CaptureError> {
        let path = self.place.path.clone();
        let unreadable = |source| CaptureError::ReadWorkspace { path: path.clone(), source };
        if !self.place.is_current().map_err(unreadable)? {
            let Place { role, live, masks, store, .. } = &self.place;
            self.place = Place::open(&path, *role, *live, masks, store).map_err(unreadable)?;
            self.state = None;
        }
        let mut state = self.state(pins)?;
        for round in 0..ROUNDS {
            let work = state.work(round == 0).map_err(unreadable)?;
            if work.is_empty() {
                break;
            }
            tell(Step::Changing);
            if state.stack.is_empty() {
                first_pass(&self.place, &mut state, work, tell)?;
            } else {
                pass::run(&self.place, &mut state, work, &|progress| tell(Step::Copying(progress)))?;
            }
        }
        if let Some(git) = git {
            git.fit(&self.place, &mut state)?;
        }
        if state.stack.len() > DEEPEST_STACK {
            let store = self.place.store.clone();
            fold(&self.place, &mut state, pins)
                .map_err(|source| CaptureError::MergeLayers { path: store, source })?;
        }
        state.save(&self.place, SaveWhen::Long)?;
        Ok((&self.place, self.state.insert(state)))
    }
}

/// Captures everything, while somebody else counts how much that is. Nobody waits for the count.
fn first_pass(
    place: &Place,
    state: &mut State,
    work: BTreeMap<DirId, Scope>,
    tell: &dyn Fn(Step),
) -> Result<(), CaptureError> {
    let (total, is_over) = (OnceLock::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(files) = count::files(place, &is_over) {
                total.get_or_init(|| files);
            }
        });
        let done = pass::run(place, state, work, &|progress| {
            tell(Step::Copying(Progress { total: total.get().copied(), ..progress }));
        });
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Makes the stack as low as its users allow, and removes what is in no stack and in no use.
fn fold(place: &Place, state: &mut State, pins: &Pins) -> io::Result<()> {
    let is_pinned = state.stack.iter().any(|id| state.is_pinned(place, *id));
    if !is_pinned {
        while let [full, next, rest @ ..] = &*state.stack {
            let (full, next) = (*full, *next);
            let stack: Vec<_> = [full].iter().chain(rest).copied().collect();
            fold_one(place, state, full, next)?;
            state.set_stack(stack)?;
        }
    } else if state.stack.len() > DEEPEST_STACK {
        let (merged, layer) = state.new_layer(place, &Kind::Lead)?;
        for id in &state.stack[1..] {
            let upper = Layer::open(&place.layer(*id), place.flavour)?;
            absorb(&upper, &layer, How::Link, place.flavour, &place.scratch)?;
        }
        state.set_stack(vec![state.stack[0], merged])?;
    }
    remove_unused(place, state, pins)
}

fn fold_one(place: &Place, state: &mut State, full: LayerId, next: LayerId) -> io::Result<()> {
    let upper = Layer::open(&place.layer(next), place.flavour)?;
    let lower = Layer::open(&place.layer(full), place.flavour)?;
    // Moving things out of a folder changes its times, and a crash may come before they are set right.
    for path in upper.leads()? {
        state.note(&Note::Metadata(path)).map_err(io::Error::other)?;
    }
    absorb(&upper, &lower, How::Move, place.flavour, &place.scratch)
}

fn remove_unused(place: &Place, state: &State, pins: &Pins) -> io::Result<()> {
    for id in place.layers()? {
        if !state.stack.contains(&id) && !state.is_pinned(place, id) {
            remove_path(&place.layer(id))?;
        }
    }
    if pins.are_known() {
        for entry in std::fs::read_dir(place.store.join(EXTRAS))? {
            let path = entry?.path();
            if !pins.has(&path) {
                remove_path(&path)?;
            }
        }
    }
    Ok(())
}

/// Removes a folder of the store and everything below it.
pub(super) fn remove_path(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = rustix::fs::open(folder, DIRECTORY, Mode::empty())?;
    remove_tree(folder, name.as_bytes())
}

/// A write made while a pass runs is usually worth another look, but not for ever.
const ROUNDS: u32 = 3;
const DEEPEST_STACK: usize = 13;
