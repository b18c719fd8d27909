//! All frozen workspaces of one daemon.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use model::mask::NameMask;

use super::fit::GitIndex;
use super::git::{foreign_git_dir, git_dir};
use super::index::Role;
use super::pins::{Holder, Pins};
use super::place::ORIGIN;
use super::root::{Root, remove_path};
use super::{CaptureError, Frozen, FrozenPart, Live, Step};

/// The store of frozen workspaces. One per daemon; may be used from any thread.
#[derive(Debug)]
pub struct Captures {
    dir: PathBuf,
    live: Live,
    masks: Vec<NameMask>,
    roots: Mutex<HashMap<PathBuf, Arc<Root>>>,
    pins: Arc<Pins>,
}

impl Captures {
    /// Opens the store at `dir`, which is made if it is not there.
    pub fn open(dir: &Path, live: Live, masks: Vec<NameMask>) -> Result<Self, CaptureError> {
        let failed = |source| CaptureError::OpenStore { path: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(failed)?;
        let dir = dir.canonicalize().map_err(failed)?;
        // The copies are as secret as their originals; who may enter the original does not matter here.
        rustix::fs::chmod(&dir, rustix::fs::Mode::RWXU)
            .map_err(|source| CaptureError::OpenStore { path: dir.clone(), source: source.into() })?;
        Ok(Self { dir, live, masks, roots: Mutex::default(), pins: Arc::default() })
    }

    /// Brings the frozen copy of `workspace` up to date and pins it for `holder`.
    ///
    /// `unmask` names masked files that this holder sees all the same: by the mask's name, or by path.
    pub fn freeze(
        &self,
        workspace: &Path,
        holder: impl Into<Holder>,
        unmask: &[String],
        tell: &dyn Fn(Step),
    ) -> Result<Frozen, CaptureError> {
        let failed = |source| CaptureError::FindWorkspace { path: workspace.to_owned(), source };
        let workspace = workspace.canonicalize().map_err(failed)?;
        if !workspace.is_dir() {
            return Err(CaptureError::NotADirectory { path: workspace });
        }
        if self.dir.starts_with(&workspace) || workspace.starts_with(&self.dir) {
            return Err(CaptureError::StoreInside { workspace, store: self.dir.clone() });
        }
        let (taken, holder) = (Timestamp::now(), holder.into());
        let work = self.root(&workspace, Role::Work)?;
        let git_dir = git_dir(&workspace);
        let index_in = |root: &Path| {
            let path = git_dir.as_ref()?.strip_prefix(root).ok()?.join("index");
            Some(path.into_os_string().into_vec())
        };
        let git = index_in(&workspace).map(|path| GitIndex { path, worktree: None });
        let pinned = work.freeze(holder, unmask, git.as_ref(), tell)?;
        let live = match self.live {
            Live::Redirect | Live::Stubs => Some(workspace.clone()),
            Live::Copy => None,
        };
        let mut frozen = Frozen {
            parts: vec![FrozenPart { mountpoint: workspace.clone(), layers: pinned.layers, live }],
            workspace,
            generation: pinned.generation,
            taken,
            caveats: pinned.caveats,
            masked: pinned.masked,
        };
        if let Some(common) = foreign_git_dir(&frozen.workspace) {
            let git = index_in(&common).map(|path| GitIndex { path, worktree: Some(&work) });
            let pinned = self.root(&common, Role::Git)?.freeze(holder, &[], git.as_ref(), tell)?;
            frozen.parts.push(FrozenPart { mountpoint: common, layers: pinned.layers, live: None });
            frozen.caveats.extend(pinned.caveats);
        }
        Ok(frozen)
    }

    /// Pins what somebody else has, or had before a restart. Call for each of these before [`Self::sweep`].
    pub fn adopt(&self, holder: impl Into<Holder>, frozen: &Frozen) -> Result<(), CaptureError> {
        let holder = holder.into();
        for layer in frozen.parts.iter().flat_map(|part| &part.layers) {
            if !layer.starts_with(&self.dir) {
                return Err(CaptureError::NotALayer { path: layer.clone() });
            }
            if !layer.join(super::FROZEN_ROOT).is_dir() {
                return Err(CaptureError::LayerGone { path: layer.clone() });
            }
        }
        frozen.parts.iter().for_each(|part| self.pins.add(holder, &part.layers));
        Ok(())
    }

    /// Pins what is frozen for `holder`, if it is the present state of its workspace: what nobody holds may change or go at
    /// any moment. `false`: it is not, and nothing is pinned.
    pub fn adopt_current(&self, holder: impl Into<Holder>, frozen: &Frozen) -> Result<bool, CaptureError> {
        let holder = holder.into();
        for (place, part) in frozen.parts.iter().enumerate() {
            let role = if place == 0 { Role::Work } else { Role::Git };
            if !self.root(&part.mountpoint, role)?.adopt_current(holder, &part.layers) {
                self.let_go(holder);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives up what `holder` has pinned, and no more: may be called while a freeze is at work.
    pub fn let_go(&self, holder: impl Into<Holder>) {
        self.pins.remove(holder.into());
    }

    /// Gives up what `holder` has pinned and tidies up. Its mounts must be gone.
    pub fn release(&self, holder: impl Into<Holder>) {
        let freed = self.pins.remove(holder.into());
        // `<store>/<capture>/layers/<layer>`
        let stores: BTreeSet<_> = freed.iter().filter_map(|layer| layer.ancestors().nth(2)).collect();
        for store in stores {
            let tidied = self.root_in(store).and_then(|root| root.map_or(Ok(()), |root| root.tidy()));
            if let Err(error) = tidied {
                tracing::warn!(%error, "tidy up after a sandbox");
            }
        }
    }

    /// What moved on in reality since a pinned frozen state: the first `cap` paths, and how many there are.
    pub fn behind(&self, frozen: &Frozen, cap: usize) -> Result<(Vec<PathBuf>, u64), CaptureError> {
        let Some(part) = frozen.parts.first() else { return Ok((Vec::new(), 0)) };
        self.root(&part.mountpoint, Role::Work)?.behind(&part.layers, cap)
    }

    /// After a restart, once every holder that is left is adopted: drops what nobody holds, and the captures of
    /// workspaces that are gone.
    pub fn sweep(&self, alive: &[Holder]) -> Result<(), CaptureError> {
        self.pins.settle(alive);
        for store in self.stores()? {
            if let Some(root) = self.root_in(&store)? {
                root.tidy()?;
            }
        }
        self.abandoned()?.iter().try_for_each(|store| self.remove(store))
    }

    /// The captures of workspaces that are gone and that nobody holds.
    pub fn abandoned(&self) -> Result<Vec<PathBuf>, CaptureError> {
        let stores = self.stores()?;
        let roots = self.lock();
        Ok(stores.into_iter().filter(|store| self.is_abandoned(store, &roots)).collect())
    }

    /// Removes one that is [abandoned](Self::abandoned), unless somebody has come back to it.
    pub fn remove(&self, store: &Path) -> Result<(), CaptureError> {
        // Held until it is gone: one that is being made looks the same on disk.
        let mut roots = self.lock();
        if !self.is_abandoned(store, &roots) {
            return Ok(());
        }
        roots.remove(store);
        remove_path(store).map_err(|source| CaptureError::OpenStore { path: store.to_owned(), source })
    }

    fn is_abandoned(&self, store: &Path, roots: &HashMap<PathBuf, Arc<Root>>) -> bool {
        let is_needed = match std::fs::read(store.join(ORIGIN)) {
            Ok(origin) => Path::new(OsStr::from_bytes(&origin)).is_dir(),
            // It does not say yet whose it is while it is being made.
            Err(_) => roots.contains_key(store),
        };
        !is_needed && !self.pins.any_beneath(store)
    }

    fn stores(&self) -> Result<Vec<PathBuf>, CaptureError> {
        let failed = |source| CaptureError::OpenStore { path: self.dir.clone(), source };
        let entries = std::fs::read_dir(&self.dir).map_err(failed)?;
        entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
    }

    /// The root that is captured in this folder of the store, if its directory is still there.
    fn root_in(&self, store: &Path) -> Result<Option<Arc<Root>>, CaptureError> {
        let Ok(origin) = std::fs::read(store.join(ORIGIN)) else { return Ok(None) };
        let origin = PathBuf::from(OsStr::from_bytes(&origin));
        let role = if store.extension().is_some() { Role::Git } else { Role::Work };
        if origin.is_dir() { self.root(&origin, role).map(Some) } else { Ok(None) }
    }

    fn root(&self, path: &Path, role: Role) -> Result<Arc<Root>, CaptureError> {
        let store = self.dir.join(key(path, role));
        let mut roots = self.lock();
        if let Some(root) = roots.get(&store) {
            return Ok(root.clone());
        }
        let root = Root::open(path, role, self.live, &self.masks, &store, &self.pins)
            .map_err(|source| CaptureError::OpenStore { path: store.clone(), source })?;
        Ok(roots.entry(store).or_insert(Arc::new(root)).clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Root>>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        for root in self.lock().values() {
            if let Err(error) = root.save() {
                tracing::warn!(%error, "save the index of a frozen workspace");
            }
        }
    }
}

/// The name of a capture's folder: FNV-1a, 128 bits wide, of the path. A git directory's has an extension.
fn key(path: &Path, role: Role) -> PathBuf {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in path.as_os_str().as_bytes() {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    PathBuf::from(if role == Role::Git { format!("{hash:032x}.git") } else { format!("{hash:032x}") })
}
