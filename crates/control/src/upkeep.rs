//! What zeno does round by round without being asked: keeps time for what cannot keep it itself, holds the soft disk
//! limit, finishes what was left half-done, tidies up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::State;
use model::limits::Defaults;
use model::sandbox::Actor;

use crate::control::Control;
use crate::reconcile::{self, Action};
use crate::recovery::logged;
use crate::slots::{DiskWatch, Seat, Slot};
use crate::store::{self, Move, Record, Which};
use crate::{lifetime, refusal};

impl Control {
    /// Goes round until the daemon shuts down.
    pub(crate) async fn look_after(self) {
        let mut round = tokio::time::interval(EVERY);
        round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut disk_due = Instant::now();
        let mut garbage_due = Instant::now();
        loop {
            tokio::select! {
                _ = round.tick() => {}
                () = self.closing() => return,
            }
            let Some(_permit) = self.permit().await else { return };
            self.tend().await;
            self.tidy().await;
            self.inner.native.tidy().await;
            self.drop_expired_snapshots().await;
            self.make_shallow().await;
            if garbage_due <= Instant::now() {
                self.collect_in_passing().await;
                garbage_due = Instant::now() + GARBAGE_EVERY;
            }
            if disk_due <= Instant::now() {
                let began = Instant::now();
                self.hold_disk_limit().await;
                // Counting what was written may mean a walk; it never takes more than a twentieth of the time.
                disk_due = Instant::now() + began.elapsed() * 20;
            }
        }
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

    /// Init keeps its own time, unless it is frozen or hangs.
    async fn end_overdue(&self, slot: &Arc<Slot>, seat: &Arc<Seat>) {
        let Ok(_turn) = slot.turn.try_lock() else { return };
        if !slot.is_seated(seat) {
            return;
        }
        let outcome = async {
            let record = self.record(slot).await?;
            self.keep_expired(slot, &record, seat).await?;
            match reconcile::expired(&record.sandbox, store::now()) {
                Action::Record(change) => self.halt(slot, change).await.map(|_sandbox| ()),
                action => self.apply(slot, &record, action, None).await,
            }
        };
        logged(slot.id, "end a sandbox whose time is over", outcome.await);
    }

    /// Those that nobody asked for.
    async fn drop_expired_snapshots(&self) {
        let snapshots = match self.snapshots(None).await {
            Ok(snapshots) => snapshots,
            Err(problem) => return logged(None, "read the snapshots", Err(problem)),
        };
        let now = store::now();
        for snapshot in snapshots.iter().filter(|snapshot| lifetime::is_over(snapshot.expires, now)) {
            let removed = self.remove_snapshot(&snapshot.id.to_string(), Actor::Atm).await;
            logged(None, "remove a snapshot whose time is over", removed.map(drop));
        }
    }

    /// One stack after the other, until none is too deep.
    async fn make_shallow(&self) {
        loop {
            match self.squash_one().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(problem) => return logged(None, "make a stack of layers shallower", Err(problem)),
            }
        }
    }

    /// Unless somebody works with layers just now.
    async fn collect_in_passing(&self) {
        if let Ok(_alone) = self.inner.layers.try_write() {
            logged(None, "collect garbage", self.collect(false).await.map(drop));
        }
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
                seat.farewell.say(&reason);
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
        self.checkpoint().await;
    }

    pub(crate) async fn checkpoint(&self) {
        let store = self.inner.store.clone();
        match tokio::task::spawn_blocking(move || store.checkpoint()).await {
            Ok(done) => logged(None, "tidy the store", done.map_err(|error| refusal::store(&error))),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "tidying the store panicked")
            }
        }
    }
}

fn overdue(seat: &Seat, clock: u64) -> bool {
    clock > seat.deadline().saturating_add(GRACE.as_nanos() as u64)
}

/// A sandbox without processes that should have some, or should be gone.
fn needs_a_look(record: &Record, now: jiff::Timestamp) -> bool {
    match record.sandbox.state {
        State::Ready | State::Active | State::Paused | State::Unreachable | State::Destroying => true,
        // Whoever makes it holds its turn, so that this look passes it by. One that nobody holds was given up,
        // and that could not be recorded.
        State::Requested | State::Provisioning => true,
        State::Stopped | State::Expired | State::Failed => {
            reconcile::resting(&record.sandbox, now) != Action::Keep
        }
        State::Destroyed => false,
    }
}

/// Between two looks for what nobody refers to any more.
const GARBAGE_EVERY: Duration = Duration::from_secs(300);
/// Between two rounds.
const EVERY: Duration = Duration::from_secs(5);
/// What init is given to end a sandbox by itself.
const GRACE: Duration = Duration::from_secs(10);
