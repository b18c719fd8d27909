//! `rollback`: the same sandbox, back on a snapshot.

use std::sync::Arc;

use model::snapshot::RollbackRequest;
use model::{Problem, Sandbox, SnapshotId, State};

use crate::control::Control;
use crate::recovery::logged;
use crate::refusal;
use crate::slots::Slot;
use crate::store::SnapshotRecord;

impl Control {
    /// Takes a sandbox back to a snapshot, or to the one it stands on. What it wrote since is gone, and so are its
    /// processes; it runs again if it ran.
    pub async fn rollback(&self, which: &str, request: RollbackRequest) -> Result<Sandbox, Problem> {
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            control.roll_back(&slot, request.snapshot.as_deref()).await
        })
        .await
    }

    async fn roll_back(&self, slot: &Arc<Slot>, to: Option<&str>) -> Result<Sandbox, Problem> {
        let record = self.record(slot).await?;
        let target = match (to, record.sandbox.snapshot) {
            (Some(which), _) => self.find_snapshot(which).await?,
            (None, Some(last)) => self.find_snapshot(&last.to_string()).await?,
            (None, None) => return Err(refusal::no_snapshot_yet(&slot.label())),
        };
        if !self.has_stood_on(slot, record.sandbox.snapshot, &target).await? {
            return Err(refusal::foreign_snapshot(&slot.label(), &target.snapshot));
        }
        let change = self.inner.native.rollback(slot.id, target.saved);
        match record.sandbox.state {
            State::Stopped | State::Expired | State::Failed => change.await?,
            State::Ready | State::Active | State::Paused => {
                let _door = slot.door.write().await;
                self.between_processes(slot, &record, change).await?;
            }
            State::Requested
            | State::Provisioning
            | State::Unreachable
            | State::Destroying
            | State::Destroyed => return Err(refusal::not_ready(&record.sandbox, VERB)),
        }
        self.stands_on(slot, target.snapshot.id).await
    }

    /// Records what a sandbox stands on now, and what it wrote before goes.
    pub(super) async fn stands_on(&self, slot: &Slot, snapshot: SnapshotId) -> Result<Sandbox, Problem> {
        let recorded = self.inner.store.rolled_back(slot.id, snapshot).await;
        recorded.map_err(|error| refusal::store(&error))?;
        let control = self.clone();
        tokio::spawn(
            async move { logged(None, "empty the trash", control.inner.native.empty_trash().await) },
        );
        Ok(self.record(slot).await?.sandbox)
    }

    /// Was the snapshot made of this sandbox, or is it among those that what it was made from stood on?
    async fn has_stood_on(
        &self,
        slot: &Slot,
        mut on: Option<SnapshotId>,
        target: &SnapshotRecord,
    ) -> Result<bool, Problem> {
        if target.snapshot.sandbox == slot.id {
            return Ok(true);
        }
        let all = self.snapshots(None).await?;
        while let Some(id) = on {
            if id == target.snapshot.id {
                return Ok(true);
            }
            on = all.iter().find(|snapshot| snapshot.id == id).and_then(|snapshot| snapshot.parent);
        }
        Ok(false)
    }
}

const VERB: &str = "roll back";
