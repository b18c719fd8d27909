//! What lies about and is nobody's.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use model::snapshot::{Garbage, GarbageItem, GarbageKind};
use model::units::Size;
use model::{LayerId, Problem};

use super::problem::NativeError;
use super::store::{self, Folder};
use super::{Inner, Native, disk};

impl Native {
    /// Removes what no sandbox needs and no snapshot either, or only says what that is. `used` are the layers of
    /// snapshots. Nobody may make a layer meanwhile.
    pub async fn collect_garbage(&self, used: BTreeSet<LayerId>, dry_run: bool) -> Result<Garbage, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.collect_garbage(used, dry_run));
        Ok(work.await.map_err(NativeError::from)??)
    }
}

impl Inner {
    fn collect_garbage(&self, mut used: BTreeSet<LayerId>, dry_run: bool) -> Result<Garbage, NativeError> {
        self.add_layers_of_sandboxes(&mut used)?;
        used.extend(self.awaited_layers()?);
        let mut items = Vec::new();
        for path in self.layers.trash().list()?.into_iter().chain(self.layers.halves()?) {
            items.push(found(GarbageKind::Leftover, &self.home, &path)?);
        }
        for layer in self.layers.list()?.into_iter().filter(|layer| !used.contains(layer)) {
            let size = self.layer_size(layer)?;
            items.push(GarbageItem { kind: GarbageKind::Layer, name: layer.to_string(), size });
            if !dry_run {
                self.layers.remove(layer)?;
                self.layer_sizes().remove(&layer);
            }
        }
        if !dry_run {
            for half in self.layers.halves()? {
                self.layers.trash().take(&half)?;
            }
            self.layers.trash().empty()?;
        }
        for store in self.captures.abandoned()? {
            items.push(found(GarbageKind::Capture, &self.home, &store)?);
            if !dry_run {
                self.captures.remove(&store)?;
            }
        }
        let size = Size(items.iter().map(|item| item.size.0).sum());
        Ok(Garbage { dry_run, items, size })
    }

    /// Every sandbox's own word counts. One whose word cannot be read may need anything.
    fn add_layers_of_sandboxes(&self, used: &mut BTreeSet<LayerId>) -> Result<(), NativeError> {
        for id in store::inventory(&self.home)? {
            match Folder::of(&self.home, id).read() {
                Ok(stored) => used.extend(stored.layers),
                // Being made, or being removed: it has no layers yet, or needs none any more.
                Err(NativeError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn found(kind: GarbageKind, home: &Path, path: &Path) -> Result<GarbageItem, NativeError> {
    let name = path.strip_prefix(home).unwrap_or(path).to_string_lossy().into_owned();
    Ok(GarbageItem { kind, name, size: disk::used(path)? })
}
