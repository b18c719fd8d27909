//! `snapshots`: which there are, and which shall be no more.

use model::sandbox::Actor;
use model::{Problem, Snapshot};

use crate::control::{Control, Error};
use crate::names::{self, Known, Noun};
use crate::recovery::logged;
use crate::refusal;
use crate::store::SnapshotRecord;

impl Control {
    /// Oldest first; all, or those made of one sandbox, which may be gone.
    pub async fn snapshots(&self, of: Option<&str>) -> Result<Vec<Snapshot>, Problem> {
        let all = self.snapshot_records().await?.into_iter().map(|record| record.snapshot);
        let Some(which) = of else { return Ok(all.collect()) };
        let which = Noun::Sandbox.bare(which);
        let existing = self.inner.slots.find(which).map(|slot| slot.id);
        let found: Vec<_> = all
            .filter(|snapshot| match &existing {
                Ok(id) => snapshot.sandbox == *id,
                Err(_) => {
                    let name = snapshot.sandbox_name.as_ref();
                    snapshot.sandbox.to_string() == which || name.is_some_and(|name| name.as_str() == which)
                }
            })
            .collect();
        match existing {
            Err(problem) if found.is_empty() => Err(problem),
            Ok(_) | Err(_) => Ok(found),
        }
    }

    /// By id, name, or the beginning of an id.
    pub async fn get_snapshot(&self, which: &str) -> Result<Snapshot, Problem> {
        Ok(self.find_snapshot(which).await?.snapshot)
    }

    /// Removes a snapshot. Layers that others stand on stay, and what stood on it stands on its parent.
    pub async fn remove_snapshot(&self, which: &str, actor: Actor) -> Result<Snapshot, Problem> {
        let which = which.to_owned();
        let control = self.clone();
        self.to_the_end(async move {
            let id = control.find_snapshot(&which).await?.snapshot.id;
            let removed = control.inner.store.remove_snapshot(id, actor).await;
            let snapshot = removed.map_err(|error| refusal::store(&error))?;
            logged(None, "let go of a workspace", control.inner.native.release(id).await);
            Ok(snapshot)
        })
        .await
    }

    pub(crate) async fn find_snapshot(&self, which: &str) -> Result<SnapshotRecord, Problem> {
        let mut records = self.snapshot_records().await?;
        let known: Vec<_> = records
            .iter()
            .map(|record| Known { id: record.snapshot.id, name: record.snapshot.name.clone() })
            .collect();
        let id = names::resolve(Noun::Snapshot, which, &known)?;
        let at = records.iter().position(|record| record.snapshot.id == id);
        Ok(records.swap_remove(at.expect("it was found among them")))
    }

    pub(crate) async fn snapshot_records(&self) -> Result<Vec<SnapshotRecord>, Problem> {
        self.inner.store.snapshots().await.map_err(|error| refusal::store(&error))
    }

    /// When the daemon comes back: holds what every snapshot needs, and drops what nobody does.
    pub(crate) async fn hold_snapshots(&self) -> Result<(), Error> {
        let records = self.inner.store.snapshots().await.map_err(|source| Error::Snapshots { source })?;
        let mut held = Vec::new();
        for record in &records {
            let id = record.snapshot.id;
            if let Err(error) = self.inner.native.hold(id, &record.saved) {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(snapshot = %id, error, "a snapshot's frozen workspace is gone");
            }
            held.push(id);
        }
        self.inner.native.settle(&held).await.map_err(|source| Error::Settle { source })
    }
}
