//! `refresh`, and what a promotion is judged by: what a sandbox changed, laid over the present.

use std::path::Path;
use std::sync::Arc;

use backends::native::{Candidate, Purpose, Rebase, Rebased, Saved};
use model::promotion::{Assessment, PromoteRequest};
use model::refresh::{RefreshRequest, Refreshed};
use model::sandbox::{Actor, CreateRequest, Freshness};
use model::snapshot::SnapshotReason;
use model::{LayerId, Problem, Snapshot, SnapshotId, State};

use super::snapshot::{Asked, Sealed, random};
use crate::control::Control;
use crate::refusal;
use crate::slots::Slot;
use crate::store::{Record, SnapshotRecord};

/// What would come of a promotion.
#[derive(Clone, Debug)]
pub enum Preview {
    /// A snapshot that can be judged.
    Made(Snapshot),
    /// Something stands in the way.
    Blocked(Assessment),
}

impl Control {
    /// Brings a sandbox up to date: what it changed, on its workspace as it is now. Its processes are made anew.
    pub async fn refresh(&self, which: &str, request: RefreshRequest) -> Result<Refreshed, Problem> {
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            control.bring_up_to_date(&slot, request).await
        })
        .await
    }

    async fn bring_up_to_date(
        &self,
        slot: &Arc<Slot>,
        request: RefreshRequest,
    ) -> Result<Refreshed, Problem> {
        let RefreshRequest { resolutions, dry_run, actor } = request;
        let record = self.record(slot).await?;
        match (self.inner.native.freshness(slot.id).await?, &record.sandbox.workspace) {
            (Some(Freshness { gone: true, .. }), Some(workspace)) => {
                return Err(refusal::workspace_gone(workspace));
            }
            (Some(Freshness { captured, behind_total: 0, gone: false, .. }), _) => {
                return Ok(Refreshed::Current { captured });
            }
            _ => {}
        }
        let wish = PromoteRequest { resolutions, ..PromoteRequest::default() };
        // First without ending anybody: most of what stands in the way shows here.
        let sealed = self.seal(slot, &record).await?;
        let laid =
            self.lay(slot, Purpose::Refresh, &sealed.saved, &sealed.request, wish.clone(), None).await?;
        let assessment = laid.rebased.assessment;
        if dry_run {
            return Ok(Refreshed::Planned { assessment });
        }
        if !assessment.is_clear() {
            return Ok(Refreshed::Blocked { assessment });
        }
        let record = self.record(slot).await?;
        let change = self.rebase_in_place(slot, &record, wish, actor);
        match record.sandbox.state {
            State::Stopped | State::Expired | State::Failed => change.await,
            State::Ready | State::Active | State::Paused => {
                // Until it stands on the present: nothing may be written that would not come along.
                let _door = slot.door.write().await;
                self.between_processes(slot, &record, change).await
            }
            State::Requested
            | State::Provisioning
            | State::Unreachable
            | State::Destroying
            | State::Destroyed => Err(refusal::not_ready(&record.sandbox, VERB)),
        }
    }

    /// Of a sandbox without processes.
    async fn rebase_in_place(
        &self,
        slot: &Arc<Slot>,
        record: &Record,
        wish: PromoteRequest,
        actor: Actor,
    ) -> Result<Refreshed, Problem> {
        let layer = LayerId::from_bits(random()?);
        let saved = self.inner.native.seal(slot.id, layer, record.sandbox.created).await?;
        let sealed = Sealed { layer, saved, request: self.kept_request(slot).await? };
        let before = self.keep_or_last(slot, record, sealed, SnapshotReason::Refresh, actor).await?;
        let layer = Some(LayerId::from_bits(random()?));
        let laid = self.lay(slot, Purpose::Refresh, &before.saved, &before.request, wish, layer).await?;
        let assessment = laid.rebased.assessment.clone();
        let Some(after) = self.keep_laid(slot, &before, laid, actor).await? else {
            return Ok(Refreshed::Blocked { assessment });
        };
        self.inner.native.rollback(slot.id, after.saved).await?;
        let sandbox = Box::new(self.stands_on(slot, after.snapshot.id).await?);
        Ok(Refreshed::Done { sandbox, before: before.snapshot.id, assessment })
    }

    /// Has anything changed in its workspace since it was frozen?
    pub async fn is_behind(&self, which: &str) -> Result<bool, Problem> {
        let slot = self.find(which, VERB).await?;
        let freshness = self.inner.native.freshness(slot.id).await?;
        Ok(freshness.is_some_and(|freshness| freshness.behind_total > 0))
    }

    /// What would come of a promotion: what is asked for, over the present.
    pub async fn preview(&self, which: &str, request: PromoteRequest) -> Result<Preview, Problem> {
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            let actor = request.actor;
            let before = control.sealed_now(&slot, SnapshotReason::Verify, actor).await?;
            let layer = Some(LayerId::from_bits(random()?));
            let (saved, made_with) = (&before.saved, &before.request);
            let laid = control.lay(&slot, Purpose::Preview, saved, made_with, request, layer).await?;
            let assessment = laid.rebased.assessment.clone();
            let kept = control.keep_laid(&slot, &before, laid, actor).await?;
            Ok(match kept {
                Some(kept) => Preview::Made(kept.snapshot),
                None => Preview::Blocked(assessment),
            })
        })
        .await
    }

    /// Lays what was sealed over the present; without a layer, only says what would come of it.
    async fn lay(
        &self,
        slot: &Slot,
        purpose: Purpose,
        saved: &Saved,
        made_with: &CreateRequest,
        request: PromoteRequest,
        layer: Option<LayerId>,
    ) -> Result<Laid, Problem> {
        let home = made_with.context.home().map(Path::to_owned);
        let (sandbox, saved, committed) = (slot.id, saved.clone(), None);
        let candidate = Candidate { sandbox, saved, committed, request, home, exactly: false };
        let (holder, probe) = (SnapshotId::from_bits(random()?), SnapshotId::from_bits(random()?));
        let order = Rebase { purpose, candidate, made_with: made_with.clone(), holder, probe, layer };
        Ok(Laid { rebased: self.inner.native.rebase(order).await?, holder, layer })
    }

    /// Records it as a snapshot of its own.
    async fn keep_laid(
        &self,
        slot: &Slot,
        sealed: &SnapshotRecord,
        laid: Laid,
        actor: Actor,
    ) -> Result<Option<SnapshotRecord>, Problem> {
        let Laid { rebased: Rebased { saved, .. }, holder, layer } = laid;
        let (Some(saved), Some(layer)) = (saved, layer) else { return Ok(None) };
        let mut record = self.record(slot).await?;
        record.sandbox.snapshot = Some(sealed.snapshot.id);
        let asked = Asked { reason: SnapshotReason::Rebase, name: None, labels: Default::default(), actor };
        let sealed = Sealed { layer, saved, request: sealed.request.clone() };
        let kept = self.keep(slot, &record, sealed, asked).await;
        // From here on the snapshot holds it.
        self.inner.native.release(holder).await?;
        kept.map(Some)
    }
}

/// What was laid over the present, and who holds that.
struct Laid {
    rebased: Rebased,
    holder: SnapshotId,
    layer: Option<LayerId>,
}

const VERB: &str = "bring up to date";
