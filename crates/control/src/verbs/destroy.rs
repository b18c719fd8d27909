//! `destroy`, and every other way in which a sandbox is removed.

use std::time::Duration;

use model::snapshot::SnapshotReason;
use model::{Problem, Sandbox, SandboxId, Snapshot, State};

use crate::control::Control;
use crate::refusal;
use crate::slots::{Seat, Slot};
use crate::store::{Move, Record};

/// On whose word a sandbox is removed.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    Asked,
    /// zeno decided by itself.
    Decided(Option<String>),
}

/// Whether what a throwaway wrote is kept, now that its command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The command was done.
    Nothing,
    /// It was not.
    Because(SnapshotReason),
    /// The sandbox ended before it: kept if that was because its time was over.
    IfExpired,
}

impl Control {
    /// Ends every process of a sandbox and removes all it had. One that is gone already, named by its id, is not an error.
    pub async fn destroy(&self, which: &str) -> Result<Sandbox, Problem> {
        let slot = match self.inner.slots.find(which) {
            Ok(slot) => slot,
            Err(problem) => return self.destroyed(which).await?.ok_or(problem),
        };
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let record = control.record(&slot).await?;
            control.remove(&slot, &record, Why::Asked).await
        })
        .await
    }

    /// Removes a throwaway whose command has ended, and says what was kept of it.
    pub async fn dismiss(&self, id: SandboxId, keep: Keep) -> Result<Option<Snapshot>, Problem> {
        let Some(slot) = self.inner.slots.by_id(id) else {
            let record = self.inner.store.record(id).await.map_err(|error| refusal::store(&error))?;
            return match record {
                Some(record) => self.kept_of(&record).await,
                None => Ok(None),
            };
        };
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let Some(seat) = slot.seat() else {
                // Destroyed or expired meanwhile; its record knows.
                let record = control.record(&slot).await?;
                let kept = control.kept_of(&record).await?;
                return control.remove(&slot, &record, Why::Asked).await.map(|_removed| kept);
            };
            seat.set_active(false);
            slot.rise();
            let reason = match keep {
                Keep::Nothing => None,
                Keep::Because(reason) => Some(reason),
                Keep::IfExpired => control.is_over(&seat).then_some(SnapshotReason::Expired),
            };
            let kept = match reason {
                Some(reason) => {
                    let record = control.record(&slot).await?;
                    control.keep_last(&slot, &record, Some(&seat), reason).await?
                }
                None => None,
            };
            if control.inner.native.dismiss(id).await.is_err() {
                let record = control.record(&slot).await?;
                return control.remove(&slot, &record, Why::Asked).await.map(|_removed| kept);
            }
            control.transition(&slot, Move::to(State::Destroying).then(State::Destroyed)).await?;
            control.inner.slots.remove(&slot);
            Ok(kept)
        })
        .await
    }

    /// Whether the clock that init holds has run out. Init itself is not asked: it shares its user with the command.
    fn is_over(&self, seat: &Seat) -> bool {
        seat.deadline() <= self.inner.native.deadline_after(Duration::ZERO)
    }

    /// What was kept of a throwaway whose end was recorded before anybody asked.
    async fn kept_of(&self, record: &Record) -> Result<Option<Snapshot>, Problem> {
        let Some(last) = record.sandbox.snapshot else { return Ok(None) };
        let last = self.get_snapshot(&last.to_string()).await?;
        // It may be what it was made from, or one that somebody asked for.
        let is_its_end = last.sandbox == record.sandbox.id && last.reason == SnapshotReason::Expired;
        Ok(is_its_end.then_some(last))
    }

    /// Needs the sandbox's turn. What cannot be removed now stays `destroying` and is tried again.
    pub(crate) async fn remove(&self, slot: &Slot, record: &Record, why: Why) -> Result<Sandbox, Problem> {
        let mut state = record.sandbox.state;
        if state == State::Destroyed {
            return Ok(record.sandbox.clone());
        }
        if let Some(seat) = slot.seat() {
            seat.set_active(false);
        }
        slot.rise();
        // A throwaway is removed by the next daemon whatever its record says, so that its end is written only once.
        if state != State::Destroying && !record.throwaway {
            match self.inner.store.transition(slot.id, why.sign(Move::to(State::Destroying))).await {
                Ok(_) => state = State::Destroying,
                // Its removal is what makes room. Until that is recorded, a daemon that starts finds a sandbox
                // without processes, which can be removed again.
                Err(error) if error.is_disk_full() => {}
                Err(error) => return Err(refusal::store(&error)),
            }
        }
        if let Err(problem) = self.inner.native.teardown(slot.id).await {
            if state != State::Destroying {
                self.transition(slot, why.sign(Move::to(State::Destroying))).await?;
            }
            let noted = self.inner.store.note(slot.id, problem.detail.clone()).await;
            if let Err(error) = noted {
                tracing::error!(sandbox = %slot.id, error = &error as &dyn std::error::Error, "failed to note why");
            }
            return Err(problem.hint(format!("zeno tries again by itself: `zeno status {}`", slot.id)));
        }
        let last = if state == State::Destroying {
            Move::to(State::Destroyed)
        } else {
            Move::to(State::Destroying).then(State::Destroyed)
        };
        let moved = match self.inner.store.transition(slot.id, why.sign(last.clone())).await {
            // What the removal freed may have been taken again already.
            Err(error) if error.is_disk_full() => {
                self.make_room().await;
                self.transition(slot, why.sign(last)).await?
            }
            moved => moved.map_err(|error| refusal::store(&error))?,
        };
        self.inner.slots.remove(slot);
        Ok(moved.sandbox)
    }

    /// Gives up what is kept only for speed. The store's log, once it is in the database, is written from its beginning again
    /// and needs no room for a while.
    async fn make_room(&self) {
        self.inner.native.make_room().await;
        self.checkpoint().await;
    }

    /// Removes what has no record, or none that says it runs. What cannot be removed now is tried again.
    pub(crate) async fn sweep(&self, id: SandboxId) {
        if let Err(problem) = self.inner.native.teardown(id).await {
            tracing::warn!(sandbox = %id, error = %problem, "failed to remove what is left of a sandbox");
        }
    }
}

impl Why {
    fn sign(&self, change: Move) -> Move {
        match self {
            Self::Asked => change,
            Self::Decided(None) => change.by_zeno(),
            Self::Decided(Some(reason)) => change.by_zeno().because(reason),
        }
    }
}
