//! `refresh`, and what a promotion is judged by: what a sandbox changed, laid over the present.

use std::path::Path;
use std::sync::Arc;

use backends::native::{Candidate, Rebase, Rebased};
use model::promotion::PromoteRequest;
use model::refresh::{RefreshRequest, Refreshed};
use model::sandbox::{Actor, Freshness};
use model::snapshot::SnapshotReason;
use model::{LayerId, Problem, Snapshot, SnapshotId};

use super::snapshot::{Asked, Sealed, random};
use crate::control::Control;
use crate::slots::Slot;
use crate::store::SnapshotRecord;

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
        let freshness = self.inner.native.freshness(slot.id).await?;
        if let Some(Freshness { captured, behind_total: 0, gone: false, .. }) = freshness {
            return Ok(Refreshed::Current { captured });
        }
        let before = self.sealed_now(slot, SnapshotReason::Refresh, actor).await?;
        let promote = PromoteRequest { resolutions, ..PromoteRequest::default() };
        if dry_run {
            let Rebased { assessment, .. } = self.lay(slot, &before, promote, None).await?.rebased;
            return Ok(Refreshed::Planned { assessment });
        }
        let laid = self.lay(slot, &before, promote, Some(LayerId::from_bits(random()?))).await?;
        let assessment = laid.rebased.assessment.clone();
        let Some(after) = self.keep_laid(slot, &before, laid, actor).await? else {
            return Ok(Refreshed::Blocked { assessment });
        };
        let record = self.record(slot).await?;
        let sandbox = self.put_on(slot, &record, after, VERB).await?;
        Ok(Refreshed::Done { sandbox: Box::new(sandbox), before: before.snapshot.id, assessment })
    }

    /// What would come of a promotion, as a snapshot that can be judged: what is asked for, over the present. `None`:
    /// something stands in the way.
    pub async fn preview(&self, which: &str, request: PromoteRequest) -> Result<Option<Snapshot>, Problem> {
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            let actor = request.actor;
            let before = control.sealed_now(&slot, SnapshotReason::Verify, actor).await?;
            let laid = control.lay(&slot, &before, request, Some(LayerId::from_bits(random()?))).await?;
            let kept = control.keep_laid(&slot, &before, laid, actor).await?;
            Ok(kept.map(|kept| kept.snapshot))
        })
        .await
    }

    /// Lays what was sealed over the present.
    async fn lay(
        &self,
        slot: &Slot,
        sealed: &SnapshotRecord,
        request: PromoteRequest,
        layer: Option<LayerId>,
    ) -> Result<Laid, Problem> {
        super::restore::is_workspace_there(sealed)?;
        let made = self.record(slot).await?.sandbox.created;
        let SnapshotRecord { request: made_with, saved, .. } = sealed.clone();
        let home = made_with.context.home().map(Path::to_owned);
        let (sandbox, committed) = (slot.id, None);
        let candidate = Candidate { sandbox, saved, committed, request, made, home, exactly: false };
        let holder = SnapshotId::from_bits(random()?);
        let rebased = self.inner.native.rebase(Rebase { candidate, made_with, holder, layer }).await?;
        Ok(Laid { rebased, holder, layer })
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
