//! `snapshot`: what a sandbox wrote, sealed.

use std::sync::Arc;

use backends::native::Saved;
use model::sandbox::{Actor, CreateRequest};
use model::snapshot::{SnapshotReason, SnapshotRequest};
use model::{Code, LayerId, Problem, Snapshot, SnapshotId, State};

use crate::control::Control;
use crate::slots::{Seat, Slot};
use crate::store::{self, Record, SnapshotRecord};
use crate::{lifetime, refusal};

impl Control {
    /// Seals all that a sandbox has written. One that runs goes on.
    pub async fn snapshot(&self, which: &str, request: SnapshotRequest) -> Result<Snapshot, Problem> {
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            let SnapshotRequest { name, labels, actor } = request;
            if let Some(name) = &name {
                control.is_name_free(name).await?;
            }
            let record = control.record(&slot).await?;
            let sealed = control.seal(&slot, &record).await?;
            let asked = Asked { reason: SnapshotReason::Asked, name, labels, actor };
            Ok(control.keep(&slot, &record, sealed, asked).await?.snapshot)
        })
        .await
    }

    /// Seals what a sandbox has written, whatever its state. Needs its turn, and the layers.
    pub(crate) async fn seal(&self, slot: &Arc<Slot>, record: &Record) -> Result<Sealed, Problem> {
        // Before anybody is ended for it.
        self.inner.native.can_seal(slot.id).await?;
        let layer = LayerId::from_bits(random()?);
        let made = record.sandbox.created;
        let seal = self.inner.native.seal(slot.id, layer, made);
        let saved = match record.sandbox.state {
            State::Stopped | State::Expired | State::Failed => seal.await?,
            State::Ready | State::Active | State::Paused => {
                let _door = slot.door.write().await;
                let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
                if self.inner.native.processes(&seat.running).await? == 0 && !record.throwaway {
                    self.between_processes(slot, record, seal).await?
                } else {
                    let copy = self.inner.native.copy(slot.id, layer, made);
                    self.while_frozen(slot, record, copy).await?
                }
            }
            State::Requested
            | State::Provisioning
            | State::Unreachable
            | State::Destroying
            | State::Destroyed => return Err(refusal::not_ready(&record.sandbox, VERB)),
        };
        let request = self.request_of(slot, slot.seat().as_deref()).await?;
        Ok(Sealed { layer, saved, request })
    }

    /// What a sandbox that may be started again was made with.
    pub(crate) async fn kept_request(&self, slot: &Slot) -> Result<CreateRequest, Problem> {
        let request = self.inner.store.request(slot.id).await.map_err(|error| refusal::store(&error))?;
        request.ok_or_else(|| refusal::not_kept(&slot.label()))
    }

    /// What a sandbox was made with. The environment of a throwaway is known only to its processes' seat.
    pub(crate) async fn request_of(
        &self,
        slot: &Slot,
        seat: Option<&Seat>,
    ) -> Result<CreateRequest, Problem> {
        let failed = |error: store::Error| refusal::store(&error);
        if let Some(request) = self.inner.store.request(slot.id).await.map_err(failed)? {
            return Ok(request);
        }
        match seat {
            Some(seat) => {
                Ok(CreateRequest { context: seat.context.clone(), ..self.bare_request(slot).await? })
            }
            None => Err(refusal::not_kept(&slot.label())),
        }
    }

    async fn bare_request(&self, slot: &Slot) -> Result<CreateRequest, Problem> {
        let request = self.inner.store.bare_request(slot.id).await.map_err(|error| refusal::store(&error))?;
        request.ok_or_else(|| refusal::not_kept(&slot.label()))
    }

    /// Records a snapshot of what was sealed.
    pub(crate) async fn keep(
        &self,
        slot: &Slot,
        record: &Record,
        sealed: Sealed,
        asked: Asked,
    ) -> Result<SnapshotRecord, Problem> {
        let Sealed { layer, saved, request } = sealed;
        let Asked { reason, name, labels, actor } = asked;
        let created = store::now();
        let has_layer = saved.layers().first() == Some(&layer);
        let snapshot = Snapshot {
            id: SnapshotId::from_bits(random()?),
            name,
            sandbox: slot.id,
            sandbox_name: slot.name.clone(),
            parent: record.sandbox.snapshot,
            reason,
            created,
            expires: (!reason.is_asked()).then(|| lifetime::expires(created, lifetime::UNASKED)),
            size: (!has_layer).then_some(model::units::Size(0)),
            depth: saved.layers().len() as u64,
            workspace: saved.workspace().map(Into::into),
            labels,
            actor,
        };
        self.inner.native.hold(snapshot.id, &saved)?;
        let kept = SnapshotRecord { snapshot, request, saved };
        let written = self.inner.store.insert_snapshot(kept.clone()).await;
        if let Err(error) = written {
            self.inner.native.release(kept.snapshot.id).await?;
            return Err(refusal::store(&error));
        }
        if has_layer {
            self.count_later(&kept, layer);
        }
        Ok(kept)
    }

    /// Keeps what a sandbox wrote that is about to be removed. Ends its processes. `None`: it wrote nothing.
    pub(crate) async fn keep_last(
        &self,
        slot: &Slot,
        record: &Record,
        seat: Option<&Seat>,
        reason: SnapshotReason,
    ) -> Result<Option<Snapshot>, Problem> {
        if record.traceless {
            self.inner.native.end(slot.id).await?;
            return Ok(None);
        }
        let _layers = self.inner.layers.read().await;
        // Whoever began to remove it had decided what was to be kept.
        if !self.inner.native.is_whole(slot.id) {
            return Ok(None);
        }
        let request = match seat {
            // Its environment went with the daemon that knew it. What it wrote is worth keeping without.
            None if record.throwaway => self.bare_request(slot).await?,
            seat => self.request_of(slot, seat).await?,
        };
        self.inner.native.end(slot.id).await?;
        let layer = LayerId::from_bits(random()?);
        let saved = match self.inner.native.seal(slot.id, layer, record.sandbox.created).await {
            // What was in memory of its own went with its processes, and a sandbox whose time is over must not stay for that.
            Err(problem) if record.sandbox.limits.disk.is_some() && problem.code == Code::Refused => {
                return Ok(None);
            }
            sealed => sealed?,
        };
        if saved.layers().first() != Some(&layer) {
            return Ok(None);
        }
        let labels = record.sandbox.labels.clone();
        let asked = Asked { reason, name: None, labels, actor: Actor::Atm };
        let kept = self.keep(slot, record, Sealed { layer, saved, request }, asked).await?;
        Ok(Some(kept.snapshot))
    }

    /// Counting takes longer for a lot than for a little, so nobody waits for it.
    fn count_later(&self, kept: &SnapshotRecord, layer: LayerId) {
        let (control, snapshot, parent) = (self.clone(), kept.snapshot.id, kept.snapshot.parent);
        let below = kept.saved.layers()[1..].to_vec();
        tokio::spawn(async move {
            let counted = async {
                let before = match parent {
                    Some(parent) => control.copied_before(parent, &below).await?,
                    None => None,
                };
                let size = match before {
                    Some(before) => control.inner.native.layer_size_beyond(layer, before).await?,
                    None => control.inner.native.layer_size(layer).await?,
                };
                let written = control.inner.store.set_snapshot_size(snapshot, size).await;
                written.map_err(|error| refusal::store(&error))
            };
            if let Err(problem) = counted.await {
                tracing::debug!(%snapshot, error = %problem, "failed to count what a snapshot holds");
            }
        });
    }

    /// The layer of the parent, if it is no part of what lies below: a sandbox whose commands ran was copied, so the next
    /// layer of the same sandbox has all of that once more.
    async fn copied_before(&self, parent: SnapshotId, below: &[LayerId]) -> Result<Option<LayerId>, Problem> {
        let records = self.snapshot_records().await?;
        let parent = records.iter().find(|record| record.snapshot.id == parent);
        Ok(parent.and_then(|parent| match parent.saved.layers() {
            [top, rest @ ..] if rest == below => Some(*top),
            _ => None,
        }))
    }

    async fn is_name_free(&self, name: &model::Name) -> Result<(), Problem> {
        let known = self.snapshot_records().await?;
        if known.iter().any(|record| record.snapshot.name.as_ref() == Some(name)) {
            return Err(refusal::store(&store::Error::SnapshotNameTaken { name: name.clone() }));
        }
        Ok(())
    }
}

/// What was sealed, and what its sandbox was made with.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The layer that was made, if one was.
    pub(crate) layer: LayerId,
    pub(crate) saved: Saved,
    pub(crate) request: CreateRequest,
}

/// What is asked of a snapshot.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) reason: SnapshotReason,
    pub(crate) name: Option<model::Name>,
    pub(crate) labels: std::collections::BTreeMap<String, String>,
    pub(crate) actor: Actor,
}

pub(crate) fn random() -> Result<u64, Problem> {
    getrandom::u64().map_err(|error| Problem::from_error(Code::Internal, &error))
}

const VERB: &str = "make a snapshot of";
