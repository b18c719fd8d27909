//! Sealing what a sandbox wrote, taking it back, and making sandboxes of what was sealed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::image;
use jiff::Timestamp;
use model::units::Size;
use model::{Caveat, LayerId, Problem, SandboxId, SnapshotId};
use serde::{Deserialize, Serialize};

use super::problem::NativeError;
use super::provision::{Beginning, Made, opening};
use super::store::{Folder, Stored};
use super::{Inner, Native, Provision, Provisioned, disk, store};

/// All that is needed to make a sandbox of a snapshot, or to take one back to it. Whoever keeps it need not look inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Saved(pub(super) Stored);

impl Saved {
    /// The layers it stands on, top first.
    #[must_use]
    pub fn layers(&self) -> &[LayerId] {
        &self.0.layers
    }

    /// Which state of its workspace it stands on, if it has one.
    #[must_use]
    pub fn base(&self) -> Option<u64> {
        self.0.frozen.as_ref().map(|frozen| frozen.generation)
    }

    /// The folder that is frozen in it.
    #[must_use]
    pub fn workspace(&self) -> Option<PathBuf> {
        self.0.frozen.as_ref().map(|frozen| frozen.workspace.clone())
    }
}

impl Native {
    /// Whether what a sandbox writes can be sealed at all.
    pub async fn can_seal(&self, id: SandboxId) -> Result<(), Problem> {
        let native = self.clone();
        let look = tokio::task::spawn_blocking(move || {
            let plan = Folder::of(&native.0.home, id).read()?.plan;
            if plan.disk.is_some() && plan.image().is_none() { Err(NativeError::OwnDisk) } else { Ok(()) }
        });
        Ok(look.await.map_err(NativeError::from)??)
    }

    /// Seals what a sandbox without processes has written as this layer, unless it wrote nothing. Takes no longer for a
    /// lot than for a little. `made`: when that sandbox was.
    pub async fn seal(&self, id: SandboxId, layer: LayerId, made: Timestamp) -> Result<Saved, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.seal(id, layer, made));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// The same for a sandbox whose processes stand still: copies what it has written.
    pub async fn copy(&self, id: SandboxId, layer: LayerId, made: Timestamp) -> Result<Saved, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.copy(id, layer, made));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Takes a sandbox without processes back to what was saved. What it wrote since is left behind.
    pub async fn rollback(&self, id: SandboxId, saved: Saved) -> Result<(), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.rollback(id, saved));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Makes a sandbox of what was saved, and waits until it answers. On error nothing is left behind.
    pub async fn restore(
        &self,
        order: Provision<'_>,
        saved: &Saved,
        caveats: Vec<Caveat>,
    ) -> Result<Provisioned, Problem> {
        let opening = opening(&order, 0)?;
        let made = tokio::task::block_in_place(|| self.0.restore(&order, saved, caveats, &opening));
        self.greet(order, made).await
    }

    /// Holds what a snapshot needs.
    pub fn hold(&self, snapshot: SnapshotId, saved: &Saved) -> Result<(), NativeError> {
        match &saved.0.frozen {
            Some(frozen) => Ok(self.0.captures.adopt(snapshot, frozen)?),
            None => Ok(()),
        }
    }

    /// Lets go of what only a snapshot that is gone needed.
    pub async fn release(&self, snapshot: SnapshotId) -> Result<(), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.captures.release(snapshot));
        Ok(work.await.map_err(NativeError::from)?)
    }

    /// Bytes a layer takes.
    pub async fn layer_size(&self, layer: LayerId) -> Result<Size, Problem> {
        let native = self.clone();
        let count = tokio::task::spawn_blocking(move || native.0.layer_size(layer));
        Ok(count.await.map_err(NativeError::from)??)
    }

    /// The same, but without what this other layer, a copy of the same sandbox's from before, has already.
    pub async fn layer_size_beyond(&self, layer: LayerId, before: LayerId) -> Result<Size, Problem> {
        let native = self.clone();
        let count = tokio::task::spawn_blocking(move || {
            disk::used_beyond(&native.0.layers.path(layer), &native.0.layers.path(before))
        });
        Ok(count.await.map_err(NativeError::from)??)
    }

    /// Removes what was thrown away.
    pub async fn empty_trash(&self) -> Result<(), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.layers.trash().empty());
        Ok(work.await.map_err(NativeError::from)?.map_err(NativeError::from)?)
    }

    /// After a restart, once every snapshot is held: drops the frozen workspaces that nobody holds.
    pub async fn settle(&self, snapshots: &[SnapshotId]) -> Result<(), Problem> {
        let mut alive: Vec<engine::capture::Holder> = snapshots.iter().map(|id| (*id).into()).collect();
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            alive.extend(store::inventory(&native.0.home)?.into_iter().map(engine::capture::Holder::from));
            Ok::<_, NativeError>(native.0.captures.sweep(&alive)?)
        });
        Ok(work.await.map_err(NativeError::from)??)
    }
}

impl Inner {
    fn seal(&self, id: SandboxId, layer: LayerId, made: Timestamp) -> Result<Saved, NativeError> {
        let folder = Folder::of(&self.home, id);
        let mut stored = folder.settle(&self.layers)?;
        if stored.plan.disk.is_some() {
            return self.copy_from_disk(&folder, stored, layer).map(|stored| Saved(stored.sealed(made)));
        }
        let upper = folder.upper(stored.turn);
        if !self.layers.is_untouched(&upper, &stored.plan, &stored.layers)? {
            self.stock.forget(id);
            let below = stored.layers.clone();
            stored.layers.insert(0, layer);
            stored.turn += 1;
            // This decides: should we be ended before the next line, the next daemon finishes it.
            folder.replace(&stored)?;
            self.layers.seal(&upper, layer, &stored.plan, &below)?;
        }
        Ok(Saved(stored.sealed(made)))
    }

    fn copy(&self, id: SandboxId, layer: LayerId, made: Timestamp) -> Result<Saved, NativeError> {
        let folder = Folder::of(&self.home, id);
        let stored = folder.read()?;
        let copied = if stored.plan.disk.is_some() {
            self.copy_from_disk(&folder, stored, layer)?
        } else {
            let upper = folder.upper(stored.turn);
            self.copy_from(&upper, stored, layer)?
        };
        Ok(Saved(copied.sealed(made)))
    }

    /// What is on a disk of its own stays there.
    fn copy_from_disk(&self, folder: &Folder, stored: Stored, layer: LayerId) -> Result<Stored, NativeError> {
        let disk = open_disk(folder, &stored)?;
        self.copy_from(&disk.path().join(UPPER), stored, layer)
    }

    fn copy_from(&self, upper: &Path, mut stored: Stored, layer: LayerId) -> Result<Stored, NativeError> {
        if !self.layers.is_untouched(upper, &stored.plan, &stored.layers)? {
            self.layers.copy(upper, layer, &stored.plan, &stored.layers)?;
            stored.layers.insert(0, layer);
        }
        Ok(stored)
    }

    fn rollback(&self, id: SandboxId, saved: Saved) -> Result<(), NativeError> {
        let folder = Folder::of(&self.home, id);
        let now = folder.settle(&self.layers)?;
        self.has_all(&saved.0)?;
        if let Some(frozen) = &saved.0.frozen {
            self.captures.adopt(id, frozen)?;
        }
        self.stock.forget(id);
        let mut next = Stored { turn: now.turn + 1, ..saved.0 };
        next.keep_terms(&now.plan);
        make_disk(&folder, &next)?;
        folder.replace(&next)?;
        // Removing it would take longer for a lot than for a little.
        if now.plan.image().is_some() {
            self.layers.trash().take(&folder.image(now.turn))?;
        }
        Ok(self.layers.trash().take(&folder.upper(now.turn))?)
    }

    fn restore(
        &self,
        order: &Provision<'_>,
        saved: &Saved,
        caveats: Vec<Caveat>,
        opening: &[u8],
    ) -> Result<Made, NativeError> {
        let mut stored = saved.0.clone();
        stored.caveats.extend(caveats);
        stored.ran_in = Some(self.boot.clone());
        self.has_all(&stored)?;
        let enforced = self.enforce(order.id, &order.request.limits)?;
        stored.bind(order.request, &enforced);
        if let Some(frozen) = &stored.frozen {
            self.captures.adopt(order.id, frozen)?;
        }
        let folder = Folder::of(&self.home, order.id);
        folder.make()?;
        folder.write(&stored)?;
        make_disk(&folder, &stored)?;
        let given = folder.trust(&self.home, order.request)?;
        self.launch_as(&folder, &stored, enforced.cgroup.as_ref(), Beginning { opening, given })
    }

    fn has_all(&self, stored: &Stored) -> Result<(), NativeError> {
        match stored.layers.iter().find(|layer| !self.layers.has(**layer)) {
            Some(layer) => Err(engine::layers::LayerError::Gone { layer: *layer }.into()),
            None => Ok(()),
        }
    }

    /// A layer never changes, so it is counted once.
    pub(super) fn layer_size(&self, layer: LayerId) -> Result<Size, NativeError> {
        let known = self.layer_sizes().get(&layer).copied();
        if let Some(size) = known {
            return Ok(size);
        }
        let path = self.layers.path(layer);
        if let Err(source) = fs::symlink_metadata(&path)
            && source.kind() == io::ErrorKind::NotFound
        {
            return Err(engine::layers::LayerError::Gone { layer }.into());
        }
        let size = disk::used(&path)?;
        self.layer_sizes().insert(layer, size);
        Ok(size)
    }
}

/// The disk of a sandbox that has one of its own, to be read. What is in memory nobody else can see.
pub(super) fn open_disk(folder: &Folder, stored: &Stored) -> Result<image::Opened, NativeError> {
    match stored.plan.image() {
        Some(_) => Ok(image::open(&folder.image(stored.turn))?),
        None => Err(NativeError::OwnDisk),
    }
}

/// Makes the disk of a sandbox that is to have one of its own.
pub(super) fn make_disk(folder: &Folder, stored: &Stored) -> Result<(), NativeError> {
    match stored.plan.image() {
        Some(size) => Ok(image::make(&folder.image(stored.turn), size)?),
        None => Ok(()),
    }
}

/// The folder on a sandbox's own disk that takes what it writes.
pub(super) const UPPER: &str = "upper";
