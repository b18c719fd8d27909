//! Carries out what [`reconcile`] decides: when the daemon comes back, when a sandbox's processes end, and whenever
//! a record and the machine do not agree.

use std::sync::Arc;
use std::time::Duration;

use backends::native::{End, Running};
use model::sandbox::CreateRequest;
use model::snapshot::SnapshotReason;
use model::{Problem, SandboxId, State};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::control::{Control, Error, Processes};
use crate::lifetime;
use crate::reconcile::{self, Action, Found};
use crate::slots::{Seat, Slot};
use crate::store::{self, Move, Record, Which};
use crate::verbs::Why;

impl Control {
    /// Brings every record and everything on the machine together, when the daemon comes back.
    pub(crate) async fn reconcile(&self) -> Result<(), Error> {
        let records = self.inner.store.records(Which::Existing).await;
        for record in records.map_err(|source| Error::Records { source })? {
            let Record { sandbox, .. } = record;
            if let Err(problem) = self.inner.slots.reserve(sandbox.id, sandbox.name) {
                tracing::error!(sandbox = %sandbox.id, error = %problem, "two records have one name");
            }
        }
        let inventory = self.inner.native.inventory().await.map_err(|source| Error::Inventory { source })?;
        let bound = Arc::new(Semaphore::new(RECONCILED_AT_ONCE));
        let mut tasks = JoinSet::new();
        for slot in self.inner.slots.all() {
            let (control, bound) = (self.clone(), Arc::clone(&bound));
            tasks.spawn(async move {
                let _permit = bound.acquire().await;
                control.look_at(&slot).await;
            });
        }
        for id in self.strangers(inventory) {
            let (control, bound) = (self.clone(), Arc::clone(&bound));
            tasks.spawn(async move {
                let _permit = bound.acquire().await;
                control.sweep(id).await;
            });
        }
        tasks.join_all().await;
        Ok(())
    }

    /// Waits for the end of a sandbox's processes and records it.
    pub(crate) fn watch(&self, slot: Arc<Slot>, seat: Arc<Seat>) {
        let control = self.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                end = control.inner.native.ended(&seat.running) => end,
                () = control.closing() => return,
            };
            if let Some(_permit) = control.permit().await {
                control.record_end(&slot, &seat, end).await;
            }
        });
    }

    async fn record_end(&self, slot: &Arc<Slot>, seat: &Arc<Seat>, end: End) {
        let _turn = slot.turn.lock().await;
        // Stopped, destroyed or started again meanwhile: whoever did that has recorded it.
        if !slot.is_seated(seat) {
            return;
        }
        slot.rise();
        let outcome = async {
            let record = self.record(slot).await?;
            if end == End::Expired {
                self.keep_expired(slot, &record, seat).await?;
            }
            let action = match end {
                End::Expired => reconcile::expired(&record.sandbox, store::now()),
                End::Died { reason } => Action::Record(Move::to(State::Failed).because(reason).by_zeno()),
            };
            self.apply(slot, &record, action, None).await
        };
        logged(slot.id, "record the end of a sandbox", outcome.await);
    }

    /// Keeps what a throwaway wrote whose time is over: nobody can start it again. Needs its turn.
    pub(crate) async fn keep_expired(
        &self,
        slot: &Slot,
        record: &Record,
        seat: &Seat,
    ) -> Result<(), Problem> {
        if record.throwaway {
            self.keep_last(slot, record, Some(seat), SnapshotReason::Expired).await?;
        }
        Ok(())
    }

    /// Compares a sandbox's record with its processes and does what follows. Leaves one alone that is being changed.
    pub(crate) async fn look_at(&self, slot: &Arc<Slot>) {
        let Ok(_turn) = slot.turn.try_lock() else { return };
        if slot.seat().is_some() {
            return;
        }
        let outcome = async {
            let record = self.record(slot).await?;
            let adopted = tokio::time::timeout(ANSWER, self.inner.native.adopt(slot.id)).await;
            let (found, running) = match adopted {
                Ok(Some(running)) => (Found::Answering, Some(running)),
                Ok(None) => (Found::Gone, None),
                Err(_elapsed) => (Found::Silent, None),
            };
            let action = reconcile::decide(&record, found, store::now());
            tracing::debug!(sandbox = %slot.id, ?found, ?action, "looked at a sandbox");
            self.apply(slot, &record, action, running).await
        };
        logged(slot.id, "look after a sandbox", outcome.await);
    }

    /// Needs the sandbox's turn.
    pub(crate) async fn apply(
        &self,
        slot: &Arc<Slot>,
        record: &Record,
        action: Action,
        running: Option<Running>,
    ) -> Result<(), Problem> {
        match (action, running) {
            (Action::Adopt(change), Some(running)) => self.adopt(slot, record, change, running).await?,
            (Action::End, Some(running)) => self.inner.native.stop(&running).await?,
            (Action::MakeAnew, _) => self.finish_anew(slot, record).await?,
            (Action::Keep | Action::Adopt(_) | Action::End, _) => {}
            (Action::Record(change), _) => {
                self.transition(slot, change).await?;
            }
            (Action::Destroy { reason, keep }, _) => {
                if let Some(why) = keep {
                    self.keep_last(slot, record, None, why).await?;
                }
                self.remove(slot, record, Why::Decided(reason)).await?;
            }
        }
        Ok(())
    }

    async fn adopt(
        &self,
        slot: &Arc<Slot>,
        record: &Record,
        change: Option<Move>,
        running: Running,
    ) -> Result<(), Problem> {
        let request = self.kept_request(slot).await?;
        let deadline = record.sandbox.expires.map_or(u64::MAX, |expires| {
            self.inner.native.deadline_after(lifetime::left(expires, store::now()))
        });
        let is_active = record.sandbox.state == State::Active && change.is_none();
        if let Some(change) = change {
            self.transition(slot, change).await?;
        }
        if record.restarting {
            // The last daemon may have ended while it kept them still.
            if record.sandbox.state != State::Paused {
                self.inner.native.resume(&running).await?;
            }
            self.set_restarting(slot, false).await?;
        }
        let CreateRequest { context, limits, net, .. } = request;
        let seat =
            self.seat(slot, Processes { running, context, limits: &limits, wiring: net.wiring(), deadline });
        seat.set_active(is_active);
        Ok(())
    }

    /// What is on the machine and belongs to no sandbox that exists.
    pub(crate) fn strangers(&self, inventory: Vec<SandboxId>) -> Vec<SandboxId> {
        inventory.into_iter().filter(|id| self.inner.slots.by_id(*id).is_none()).collect()
    }
}

/// Nobody waits for the outcome of upkeep, so the log is where it goes.
pub(crate) fn logged(sandbox: impl Into<Option<SandboxId>>, what: &str, outcome: Result<(), Problem>) {
    if let Err(problem) = outcome {
        let sandbox = sandbox.into();
        tracing::warn!(?sandbox, error = %problem, causes = ?problem.causes, "failed to {what}");
    }
}

/// How long an init may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(5);
const RECONCILED_AT_ONCE: usize = 16;
