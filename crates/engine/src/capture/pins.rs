//! Who uses which layer. A used layer never changes and is never removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{SandboxId, SnapshotId};

/// Who uses a frozen workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Sandbox(SandboxId),
    Snapshot(SnapshotId),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(id) => id.fmt(f),
            Self::Snapshot(id) => id.fmt(f),
        }
    }
}

impl From<SandboxId> for Holder {
    fn from(id: SandboxId) -> Self {
        Self::Sandbox(id)
    }
}

impl From<SnapshotId> for Holder {
    fn from(id: SnapshotId) -> Self {
        Self::Snapshot(id)
    }
}

#[derive(Debug, Default)]
pub(super) struct Pins {
    holders: Mutex<BTreeMap<PathBuf, BTreeSet<Holder>>>,
    are_known: AtomicBool,
}

impl Pins {
    pub(super) fn add<'a>(&self, holder: Holder, layers: impl IntoIterator<Item = &'a PathBuf>) {
        let mut holders = self.lock();
        for layer in layers {
            holders.entry(layer.clone()).or_default().insert(holder);
        }
    }

    /// Drops what `holder` holds. Returns the layers that are now nobody's.
    pub(super) fn remove(&self, holder: Holder) -> Vec<PathBuf> {
        self.retain(|other| *other != holder)
    }

    /// Keeps only these holders; from now on a layer without a holder is nobody's.
    pub(super) fn settle(&self, alive: &[Holder]) {
        self.retain(|holder| alive.contains(holder));
        self.are_known.store(true, Ordering::Release);
    }

    /// Have all holders from before the daemon's start been heard?
    pub(super) fn are_known(&self) -> bool {
        self.are_known.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, layer: &Path) -> bool {
        self.lock().contains_key(layer)
    }

    /// Is anything beneath `folder` in use?
    pub(super) fn any_beneath(&self, folder: &Path) -> bool {
        self.lock().keys().any(|layer| layer.starts_with(folder))
    }

    fn retain(&self, mut keep: impl FnMut(&Holder) -> bool) -> Vec<PathBuf> {
        let mut freed = Vec::new();
        self.lock().retain(|layer, holders| {
            holders.retain(&mut keep);
            if holders.is_empty() {
                freed.push(layer.clone());
            }
            !holders.is_empty()
        });
        freed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, BTreeSet<Holder>>> {
        // The map is whole after every statement that changes it.
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
