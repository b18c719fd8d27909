//! One pass over what may have changed: look, compare with the index, and bring the top layer up to date.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use rustix::fs::{AtFlags, Mode, openat};

use super::copy::{CREATE, Copy, Means};
use super::files::{Seen, Stat, join, list, look, look_at, open_beneath, split};
use super::git::Rules;
use super::index::{Absence, DirId, Entry, Name, ROOT, Role};
use super::journal::Note;
use super::judge::{Bench, Fate};
use super::layer::{Kind, Layer};
use super::metadata;
use super::place::Place;
use super::pool::{Outcome, Pool};
use super::state::{Scope, State};
use super::{CaptureError, Progress, secrets};

pub(super) struct Pass<'scope, 'env, 'state> {
    place: &'env Place,
    state: &'state mut State,
    pool: Pool<'scope, 'env>,
    progress: &'state dyn Fn(Progress),
    layer: Option<Arc<Layer>>,
    work: BTreeMap<DirId, Scope>,
    /// Directories made in this pass: complete or, after a crash, as good as not there.
    fresh: BTreeSet<DirId>,
    /// Directories of the layer whose metadata must be set again at the end.
    touched: BTreeSet<DirId>,
    /// Where in the layer the first name of a file with several names was copied to.
    links: HashMap<u64, (DirId, Name)>,
    /// Files seen to have several names, whose other names are to be looked at too.
    unmet: BTreeSet<u64>,
    done: Progress,
}

/// The directory at work.
struct Spot {
    id: DirId,
    path: Vec<u8>,
    role: Role,
    rules: Option<Arc<Rules>>,
    source: Arc<OwnedFd>,
    target: Option<Arc<OwnedFd>>,
    is_fresh: bool,
}

/// Looks at everything in `work` and all that follows from it.
pub(super) fn run(
    place: &Place,
    state: &mut State,
    work: BTreeMap<DirId, Scope>,
    progress: &dyn Fn(Progress),
) -> Result<(), CaptureError> {
    thread::scope(|scope| Pass::new(scope, place, state, work, progress).run())
}

/// Puts other contents into a captured file, which is open as `file`: what a copy has to say otherwise than reality.
pub(super) fn put(
    place: &Place,
    state: &mut State,
    path: &[u8],
    file: &OwnedFd,
    bytes: &[u8],
) -> Result<(), CaptureError> {
    state.note(&Note::Entry(path.to_vec()))?;
    thread::scope(|scope| {
        let mut pass = Pass::new(scope, place, state, BTreeMap::new(), &|_| ());
        pass.put(path, file, bytes).map_err(|source| write_failed(path, source))?;
        pass.run()
    })
}

impl<'scope, 'env: 'scope, 'state> Pass<'scope, 'env, 'state> {
    fn new(
        scope: &'scope thread::Scope<'scope, 'env>,
        place: &'env Place,
        state: &'state mut State,
        work: BTreeMap<DirId, Scope>,
        progress: &'state dyn Fn(Progress),
    ) -> Self {
        Pass {
            place,
            state,
            pool: Pool::new(scope, &place.scratch, place.flavour),
            progress,
            layer: None,
            work,
            fresh: BTreeSet::new(),
            touched: BTreeSet::new(),
            links: HashMap::new(),
            unmet: BTreeSet::new(),
            done: Progress::default(),
        }
    }
}

impl Pass<'_, '_, '_> {
    fn run(mut self) -> Result<(), CaptureError> {
        while !self.work.is_empty() {
            // Children have higher numbers than their parents, so this goes from the top down.
            while let Some((id, scope)) = self.work.pop_first() {
                if let Err(error) = self.visit(id, scope) {
                    // The threads must have come to rest before the layer is given up.
                    drop(self.pool.finish());
                    return Err(error);
                }
            }
            for outcome in self.pool.finish() {
                self.settle(outcome)?;
            }
            self.meet_other_names();
        }
        // From the bottom up; dressing may make leads above, which then come later.
        while let Some(id) = self.touched.pop_last() {
            self.dress(id)?;
        }
        if self.layer.is_some() {
            self.state.advance();
        }
        Ok(())
    }

    fn visit(&mut self, id: DirId, scope: Scope) -> Result<(), CaptureError> {
        let Some(dir) = self.state.index.dir(id) else { return Ok(()) };
        let (role, known) = (dir.role, dir.stat);
        let path = self.state.index.path(id);
        let source = match open_beneath(&self.place.root, &path) {
            Ok(source) => Arc::new(source),
            Err(error) => return self.lose(id, &path, error),
        };
        let is_fresh = self.fresh.contains(&id);
        self.state.watch_dir(id, &*source, matches!(scope, Scope::Deep));
        let seen = look_at(&*source).map_err(|source| self.unreadable(&path, source))?;
        if !same_folder(&known, &seen.stat) {
            self.touch(id, &path)?;
        }
        let scope = self.state.forget_stale_rules(id, role, scope);
        let names = match self.names(id, &source, &scope) {
            Ok(names) => names,
            Err(error) => return self.lose(id, &path, error),
        };
        let rules = self.state.rules(self.place, id);
        let mut spot = Spot { id, path, role, rules, source, target: None, is_fresh };
        for (name, is_deep) in names {
            match look(&*spot.source, &name) {
                Ok(Some(seen)) => self.examine(&mut spot, &name, &seen, is_deep)?,
                Ok(None) => self.drop_entry(&mut spot, &name)?,
                // A folder that may be listed but not entered.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let path = spot.path.clone();
                    return self.lose(id, &path, error);
                }
                Err(source) => return Err(self.unreadable(&join(&spot.path, &name), source)),
            }
        }
        (self.progress)(self.done);
        Ok(())
    }

    /// The names to look at, each with whether folders are to be looked at in depth.
    fn names(&self, id: DirId, source: &OwnedFd, scope: &Scope) -> io::Result<BTreeMap<Name, bool>> {
        match scope {
            Scope::Names(names) => Ok(names.clone()),
            Scope::Deep => {
                let known = self.state.index.dir(id).into_iter().flat_map(|dir| dir.entries.keys().cloned());
                let listed = list(source)?.into_iter().map(|(name, _)| name);
                Ok(known.chain(listed).map(|name| (name, true)).collect())
            }
        }
    }

    fn examine(
        &mut self,
        spot: &mut Spot,
        name: &[u8],
        seen: &Seen,
        is_deep: bool,
    ) -> Result<(), CaptureError> {
        let bench = Bench {
            path: &spot.path,
            role: spot.role,
            rules: spot.rules.as_deref(),
            live: self.place.live,
            masks: &self.place.masks,
        };
        let mut judgement = bench.judge(name, seen);
        if judgement.fate == Fate::Live
            && let Ok(folder) = open_beneath(&*spot.source, name)
            && secrets::lie_near_the_top_of(folder, &self.place.masks)
        {
            judgement.fate = Fate::Dir(Role::Ignored);
        }
        if judgement.leans_on_index {
            self.state.leaning.insert((spot.id, name.into()));
        }
        match self.state.index.entry(spot.id, name) {
            Some(Entry::Dir(child)) => {
                let child = *child;
                let role = self.state.index.dir(child).map(|dir| dir.role);
                if role.is_some_and(|role| judgement.fate == Fate::Dir(role)) {
                    let scope = if is_deep { Scope::Deep } else { Scope::Names(BTreeMap::new()) };
                    self.add_work(child, scope);
                    return Ok(());
                }
            }
            Some(entry) if judgement.fate.is_met_by(entry, &seen.stat) => return Ok(()),
            Some(_) | None => {}
        }
        self.replace(spot, name, seen, judgement.fate)
    }

    fn add_work(&mut self, id: DirId, scope: Scope) {
        match self.work.entry(id) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(scope);
            }
            std::collections::btree_map::Entry::Occupied(mut occupied) => occupied.get_mut().widen(scope),
        }
    }

    /// Puts what `fate` says in the place of whatever the layers have at `name`.
    fn replace(&mut self, spot: &mut Spot, name: &[u8], seen: &Seen, fate: Fate) -> Result<(), CaptureError> {
        let path = join(&spot.path, name);
        let had_entry = self.state.index.entry(spot.id, name).is_some();
        let changes_layer = had_entry || !matches!(fate, Fate::Masked(_) | Fate::Absent(_));
        if changes_layer && !spot.is_fresh {
            self.state.note(&Note::Entry(path.clone()))?;
        }
        if had_entry {
            self.state.forget(spot.id, name);
        }
        if changes_layer {
            self.touched.insert(spot.id);
        }
        if !matches!(fate, Fate::Dir(_) | Fate::Live) {
            self.done.files += 1;
            if self.done.files.is_multiple_of(REPORTED_FILES) {
                (self.progress)(self.done);
            }
        }
        let failed = |source| write_failed(&path, source);
        match fate {
            Fate::Dir(role) => {
                self.place_dir(spot, name, &Kind::Opaque).map_err(failed)?;
                let child = self.state.index.add_dir(spot.id, name, role);
                self.fresh.insert(child);
                self.touched.insert(child);
                self.add_work(child, Scope::Deep);
            }
            Fate::Live => {
                let kind = Kind::Redirect([b"/", &*path].concat());
                let target = self.place_dir(spot, name, &kind).map_err(failed)?;
                if let Ok(source) = open_beneath(&*spot.source, name) {
                    metadata::copy(&source, &seen.stat, &target).map_err(failed)?;
                }
                self.state.index.set(spot.id, name, Entry::Live(seen.stat));
            }
            Fate::Masked(mask) => {
                self.make_absent(spot, name, had_entry, Entry::Masked(mask)).map_err(failed)?;
            }
            Fate::Absent(why) => {
                let entry = Entry::Absent { why, stat: seen.stat };
                self.make_absent(spot, name, had_entry, entry).map_err(failed)?;
            }
            Fate::File(means) => self.copy_file(spot, name, seen, means).map_err(failed)?,
            Fate::Special => self.give(spot, name, seen, Means::Copy).map_err(failed)?,
        }
        Ok(())
    }

    fn place_dir(&mut self, spot: &mut Spot, name: &[u8], kind: &Kind) -> io::Result<OwnedFd> {
        let target = self.target(spot)?;
        self.layer()?.place_dir(&*target, name, kind, &self.place.scratch)
    }

    fn make_absent(&mut self, spot: &mut Spot, name: &[u8], had_entry: bool, entry: Entry) -> io::Result<()> {
        if had_entry {
            let target = self.target(spot)?;
            self.layer()?.remove(&*target, name)?;
        }
        self.state.index.set(spot.id, name, entry);
        Ok(())
    }

    fn copy_file(&mut self, spot: &mut Spot, name: &[u8], seen: &Seen, means: Means) -> io::Result<()> {
        self.layer()?;
        // The kernel follows a stub only from the lowest layer above the data; elsewhere it has to be a copy.
        let is_lowest = self.state.stack.len() == 1;
        let means = if is_lowest || means == Means::Link { means } else { Means::Copy };
        if seen.stat.nlink < 2 || means != Means::Copy {
            return self.give(spot, name, seen, means);
        }
        // The names of one file are handled one after the other, so that the later become links to the first.
        if let Some((dir, first)) = self.links.get(&seen.stat.ino).cloned()
            && let Some(entry) = self.state.index.entry(dir, &first).cloned()
        {
            let target = self.target(spot)?;
            let from = self.open_target(dir)?;
            self.place.scratch.place(&*target, name, |scratch, temporary| {
                Ok(rustix::fs::linkat(&from, &*first, scratch, temporary, AtFlags::empty())?)
            })?;
            self.state.index.set(spot.id, name, entry);
            return Ok(());
        }
        let copy = self.copy_of(spot, name, seen, means)?;
        let made = copy.run(&self.place.scratch, self.place.flavour);
        let outcome = Outcome { dir: spot.id, name: name.into(), is_fresh: spot.is_fresh, made };
        self.settle_entry(outcome)?;
        self.links.insert(seen.stat.ino, (spot.id, name.into()));
        self.unmet.insert(seen.stat.ino);
        Ok(())
    }

    fn give(&mut self, spot: &mut Spot, name: &[u8], seen: &Seen, means: Means) -> io::Result<()> {
        let copy = self.copy_of(spot, name, seen, means)?;
        self.pool.give(copy);
        Ok(())
    }

    fn copy_of(&mut self, spot: &mut Spot, name: &[u8], seen: &Seen, means: Means) -> io::Result<Copy> {
        self.done.bytes += seen.stat.size;
        let target = self.target(spot)?;
        Ok(Copy {
            dir: spot.id,
            name: name.into(),
            seen: *seen,
            means,
            source: spot.source.clone(),
            target,
            is_fresh: spot.is_fresh,
        })
    }

    fn drop_entry(&mut self, spot: &mut Spot, name: &[u8]) -> Result<(), CaptureError> {
        if self.state.index.entry(spot.id, name).is_none() {
            return Ok(());
        }
        let path = join(&spot.path, name);
        self.state.note(&Note::Entry(path.clone()))?;
        self.touched.insert(spot.id);
        self.state.forget(spot.id, name);
        let target = self.target(spot).map_err(|source| write_failed(&path, source))?;
        let layer = self.layer().map_err(|source| write_failed(&path, source))?;
        layer.remove(&*target, name).map_err(|source| write_failed(&path, source))
    }

    /// A directory cannot be read any more.
    fn lose(&mut self, id: DirId, path: &[u8], error: io::Error) -> Result<(), CaptureError> {
        let Some(dir) = self.state.index.dir(id).filter(|_| id != ROOT) else {
            return Err(self.unreadable(path, error));
        };
        let (parent, name) = (dir.parent, dir.name.clone());
        if error.kind() != io::ErrorKind::PermissionDenied {
            // It has just gone, or become something else; its parent has not been told yet.
            self.state.look_again(parent, &name);
            return Ok(());
        }
        let stat = self.look_beneath(parent, &name);
        self.state.note(&Note::Entry(path.to_vec()))?;
        self.state.forget(parent, &name);
        self.touched.insert(parent);
        self.remove_in_layer(parent, &name).map_err(|source| write_failed(path, source))?;
        self.state.index.set(parent, &name, Entry::Absent { why: Absence::Unreadable, stat });
        Ok(())
    }

    fn look_beneath(&self, dir: DirId, name: &[u8]) -> Stat {
        open_beneath(&self.place.root, &self.state.index.path(dir))
            .and_then(|dir| look(dir, name))
            .ok()
            .flatten()
            .map_or_else(Stat::default, |seen| seen.stat)
    }

    fn settle(&mut self, outcome: Outcome) -> Result<(), CaptureError> {
        let path = self.state.index.path_of(outcome.dir, &outcome.name);
        self.settle_entry(outcome).map_err(|source| write_failed(&path, source))
    }

    fn settle_entry(&mut self, outcome: Outcome) -> io::Result<()> {
        let Outcome { dir, name, is_fresh, made } = outcome;
        let made = made?;
        if !is_fresh && matches!(made, None | Some(Entry::Absent { .. })) {
            self.remove_in_layer(dir, &name)?;
        }
        match made {
            Some(entry) => self.state.index.set(dir, &name, entry),
            None => self.state.look_again(dir, &name),
        }
        Ok(())
    }

    fn put(&mut self, path: &[u8], file: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = split(path);
        let Some(dir) = self.state.index.find(folder) else { return Ok(()) };
        self.touched.insert(dir);
        let stat = look_at(file)?.stat;
        let target = self.open_target(dir)?;
        self.place.scratch.place(&target, name, |scratch, temporary| {
            let copy = openat(scratch, temporary, CREATE, Mode::RUSR | Mode::WUSR)?;
            let mut copy = File::from(copy);
            copy.write_all(bytes)?;
            metadata::copy(file, &stat, &copy)
        })?;
        Ok(())
    }

    fn remove_in_layer(&mut self, dir: DirId, name: &[u8]) -> io::Result<()> {
        let target = self.open_target(dir)?;
        self.layer()?.remove(&target, name)
    }

    /// A file with several names raises events only under the one that was used.
    fn meet_other_names(&mut self) {
        let unmet = std::mem::take(&mut self.unmet);
        if unmet.is_empty() {
            return;
        }
        let mut others = Vec::new();
        for (id, dir) in self.state.index.dirs() {
            for (name, entry) in &dir.entries {
                if let Entry::File { stat, .. } = entry
                    && unmet.contains(&stat.ino)
                    && stat.nlink < 2
                {
                    others.push((id, name.clone()));
                }
            }
        }
        for (id, name) in others {
            self.add_work(id, Scope::Names(BTreeMap::from([(name, false)])));
        }
    }

    fn touch(&mut self, id: DirId, path: &[u8]) -> Result<(), CaptureError> {
        if !self.fresh.contains(&id) {
            self.state.note(&Note::Metadata(path.to_vec()))?;
        }
        self.touched.insert(id);
        Ok(())
    }

    /// Gives a directory of the layer the metadata of the real one.
    fn dress(&mut self, id: DirId) -> Result<(), CaptureError> {
        if self.state.index.dir(id).is_none() {
            return Ok(());
        }
        let path = self.state.index.path(id);
        // Gone meanwhile: there is an event for that.
        let Ok(source) = open_beneath(&self.place.root, &path) else { return Ok(()) };
        let failed = |source| write_failed(&path, source);
        let stat = look_at(&source).map_err(failed)?.stat;
        let target = self.open_target(id).map_err(failed)?;
        metadata::copy(&source, &stat, target).map_err(failed)?;
        if let Some(dir) = self.state.index.dir_mut(id) {
            dir.stat = stat;
        }
        Ok(())
    }

    fn target(&mut self, spot: &mut Spot) -> io::Result<Arc<OwnedFd>> {
        if let Some(target) = &spot.target {
            return Ok(target.clone());
        }
        let target = Arc::new(self.open_target(spot.id)?);
        spot.target = Some(target.clone());
        Ok(target)
    }

    /// A directory of the layer, for writing. If it has to be made, so perhaps have those it stands in.
    fn open_target(&mut self, id: DirId) -> io::Result<OwnedFd> {
        let layer = self.layer()?;
        let path = self.state.index.path(id);
        if let Some(dir) = layer.find_dir(&path)? {
            return Ok(dir);
        }
        let mut at = id;
        while let Some(dir) = self.state.index.dir(at) {
            let parent = dir.parent;
            if self.touched.insert(at) {
                self.state.note_lead(at)?;
            }
            if at == ROOT {
                break;
            }
            at = parent;
        }
        layer.open_dir(&path, &self.place.scratch)
    }

    /// The layer to write into: the top one if nobody uses it, else a new one.
    fn layer(&mut self) -> io::Result<Arc<Layer>> {
        if let Some(layer) = &self.layer {
            return Ok(layer.clone());
        }
        let (layer, is_new) = self.state.writable_layer(self.place)?;
        if is_new {
            self.touched.insert(ROOT);
        }
        Ok(self.layer.insert(Arc::new(layer)).clone())
    }

    fn unreadable(&self, path: &[u8], source: io::Error) -> CaptureError {
        CaptureError::ReadWorkspace { path: self.place.path.join(OsStr::from_bytes(path)), source }
    }
}

/// One folder may have very many.
const REPORTED_FILES: u64 = 64;

fn same_folder(known: &Stat, now: &Stat) -> bool {
    (known.mode, known.uid, known.gid, known.mtime, known.ctime)
        == (now.mode, now.uid, now.gid, now.mtime, now.ctime)
}

pub(super) fn write_failed(path: &[u8], source: io::Error) -> CaptureError {
    CaptureError::WriteLayer { path: PathBuf::from(OsStr::from_bytes(path)), source }
}
