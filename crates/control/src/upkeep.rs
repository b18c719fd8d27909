//! What zeno does without being asked: notices ends, keeps time for what cannot keep it itself, holds the soft disk
//! limit, finishes what was left half-done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backends::native::{End, Running};
use model::limits::Defaults;
use model::{Problem, SandboxId, State};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::control::{Control, Error, Processes};
use crate::reconcile::{self, Action, Found};
use crate::slots::{DiskWatch, Seat, Slot};
use crate::store::{self, Move, Record, Which};
use crate::verbs::Why;
use crate::{lifetime, refusal};

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

    /// Goes round until the daemon shuts down.
    pub(crate) async fn look_after(self) {
        let mut round = tokio::time::interval(EVERY);
        round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut disk_due = Instant::now();
        loop {
            tokio::select! {
                _ = round.tick() => {}
                () = self.closing() => return,
            }
            let Some(_permit) = self.permit().await else { return };
            self.tend().await;
            self.tidy().await;
            if disk_due <= Instant::now() {
                let began = Instant::now();
                self.hold_disk_limit().await;
                // Counting what was written may mean a walk; it never takes more than a twentieth of the time.
                disk_due = Instant::now() + began.elapsed() * 20;
            }
        }
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
            let action = match end {
                End::Expired => reconcile::expired(&record.sandbox, store::now()),
                End::Died { reason } => Action::Record(Move::to(State::Failed).because(reason).by_zeno()),
            };
            self.apply(slot, &record, action, None).await
        };
        logged(slot.id, "record the end of a sandbox", outcome.await);
    }

    /// Every sandbox that needs something done, one after the other.
    async fn tend(&self) {
        let records = match self.inner.store.records(Which::Existing).await {
            Ok(records) => records,
            Err(error) => return logged(None, "read the records", Err(refusal::store(&error))),
        };
        let clock = self.inner.native.deadline_after(Duration::ZERO);
        for record in records {
            let Some(slot) = self.inner.slots.by_id(record.sandbox.id) else { continue };
            match slot.seat() {
                Some(seat) if overdue(&seat, clock) => self.end_overdue(&slot, &seat).await,
                Some(_) => {}
                None if needs_a_look(&record, store::now()) => self.look_at(&slot).await,
                None => {}
            }
        }
    }

    /// Compares a sandbox's record with its processes and does what follows. Leaves one alone that is being changed.
    async fn look_at(&self, slot: &Arc<Slot>) {
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
    async fn apply(
        &self,
        slot: &Arc<Slot>,
        record: &Record,
        action: Action,
        running: Option<Running>,
    ) -> Result<(), Problem> {
        match (action, running) {
            (Action::Adopt(change), Some(running)) => self.adopt(slot, record, change, running).await?,
            (Action::End, Some(running)) => self.inner.native.stop(&running).await?,
            (Action::Keep | Action::Adopt(_) | Action::End, _) => {}
            (Action::Record(change), _) => {
                self.transition(slot, change).await?;
            }
            (Action::Destroy { reason }, _) => {
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
        let request = self.inner.store.request(slot.id).await.map_err(|error| refusal::store(&error))?;
        let request = request.ok_or_else(|| refusal::not_found(&slot.label(), &[]))?;
        let left = record.sandbox.expires.map_or(Duration::MAX, |end| lifetime::left(end, store::now()));
        let deadline = self.inner.native.deadline_after(left);
        let is_active = record.sandbox.state == State::Active && change.is_none();
        if let Some(change) = change {
            self.transition(slot, change).await?;
        }
        let (context, limits) = (request.context, &request.limits);
        let seat = self.seat(slot, Processes { running, context, limits, deadline });
        seat.set_active(is_active);
        Ok(())
    }

    /// Init keeps its own time, unless it is frozen or hangs.
    async fn end_overdue(&self, slot: &Arc<Slot>, seat: &Arc<Seat>) {
        let Ok(_turn) = slot.turn.try_lock() else { return };
        if !slot.is_seated(seat) {
            return;
        }
        let outcome = async {
            let record = self.record(slot).await?;
            match reconcile::expired(&record.sandbox, store::now()) {
                Action::Record(change) => self.halt(slot, change).await.map(|_sandbox| ()),
                action => self.apply(slot, &record, action, None).await,
            }
        };
        logged(slot.id, "end a sandbox whose time is over", outcome.await);
    }

    async fn hold_disk_limit(&self) {
        for slot in self.inner.slots.all() {
            let Some(seat) = slot.seat().filter(|seat| seat.disk == DiskWatch::Soft) else { continue };
            let written = match self.inner.native.written(slot.id).await {
                Ok(written) => written,
                // It may have been removed while it was counted.
                Err(problem) => {
                    tracing::debug!(sandbox = %slot.id, error = %problem, "failed to count what it wrote");
                    continue;
                }
            };
            if written <= Defaults::DISK {
                continue;
            }
            let _turn = slot.turn.lock().await;
            if slot.is_seated(&seat) {
                let limit = Defaults::DISK;
                let reason = format!(
                    "it wrote {}, more than the default of {limit}; `--disk` sets another",
                    written.rough()
                );
                let change = Move::to(State::Stopped).because(reason).by_zeno();
                logged(slot.id, "stop a sandbox", self.halt(&slot, change).await.map(|_sandbox| ()));
            }
        }
    }

    /// Removes what belongs to no record, forgets what is old, and brings the store's log into its file.
    async fn tidy(&self) {
        match self.inner.native.inventory().await {
            Ok(inventory) => {
                for id in self.strangers(inventory) {
                    self.sweep(id).await;
                }
            }
            Err(problem) => logged(None, "find out which sandboxes there are", Err(problem)),
        }
        let pruned = self.inner.store.prune().await;
        logged(None, "forget old records", pruned.map_err(|error| refusal::store(&error)));
        let store = self.inner.store.clone();
        match tokio::task::spawn_blocking(move || store.checkpoint()).await {
            Ok(done) => logged(None, "tidy the store", done.map_err(|error| refusal::store(&error))),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "tidying the store panicked")
            }
        }
    }

    fn strangers(&self, inventory: Vec<SandboxId>) -> Vec<SandboxId> {
        inventory.into_iter().filter(|id| self.inner.slots.by_id(*id).is_none()).collect()
    }
}

fn overdue(seat: &Seat, clock: u64) -> bool {
    clock > seat.deadline().saturating_add(GRACE.as_nanos() as u64)
}

/// A sandbox without processes that should have some, or should be gone.
fn needs_a_look(record: &Record, now: jiff::Timestamp) -> bool {
    match record.sandbox.state {
        State::Ready | State::Active | State::Paused | State::Unreachable | State::Destroying => true,
        State::Stopped | State::Expired | State::Failed => {
            reconcile::resting(&record.sandbox, now) != Action::Keep
        }
        // Whoever makes it holds its turn and will say how it went.
        State::Requested | State::Provisioning | State::Destroyed => false,
    }
}

/// Nobody waits for the outcome of upkeep, so the log is where it goes.
fn logged(sandbox: impl Into<Option<SandboxId>>, what: &str, outcome: Result<(), Problem>) {
    if let Err(problem) = outcome {
        let sandbox = sandbox.into();
        tracing::warn!(?sandbox, error = %problem, causes = ?problem.causes, "failed to {what}");
    }
}

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(5);
/// What init is given to end a sandbox by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How long an init may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(5);
const RECONCILED_AT_ONCE: usize = 16;
