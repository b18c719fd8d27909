//! Changing what a sandbox stands on: its processes are ended and made anew around the change.
//!
//! The record says so from before they are ended until they are there again, so that a daemon that starts in between
//! makes them anew, too.

use std::sync::Arc;

use backends::native::{Provision, Provisioned, Running};
use model::sandbox::CreateRequest;
use model::{Code, Problem, State};

use crate::control::{Control, Processes};
use crate::slots::Slot;
use crate::store::{self, Move, Record};
use crate::{lifetime, refusal};

impl Control {
    /// Ends the processes of a sandbox that has some, makes the change, and makes them anew with the time they had left.
    /// Needs the sandbox's turn and its door.
    pub(crate) async fn between_processes<T>(
        &self,
        slot: &Arc<Slot>,
        record: &Record,
        change: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
        self.inner.native.note_execs(&seat.running).await?;
        self.set_restarting(slot, true).await?;
        seat.set_active(false);
        slot.rise();
        self.inner.native.end(slot.id).await?;
        let changed = change.await;
        self.make_anew(slot, record, seat.deadline()).await?;
        changed
    }

    /// Does something while the processes of a sandbox stand still. Those of one that is paused do so already.
    pub(crate) async fn while_frozen<T>(
        &self,
        slot: &Slot,
        record: &Record,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        if record.sandbox.state == State::Paused {
            return work.await;
        }
        let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
        self.set_restarting(slot, true).await?;
        let done = match self.freeze(slot, &seat.running).await {
            Ok(()) => work.await,
            Err(problem) => Err(problem),
        };
        // Even if they could not be frozen: an init that did not answer in time may have frozen them since.
        self.inner.native.resume(&seat.running).await?;
        self.set_restarting(slot, false).await?;
        done
    }

    /// Freezes every process, or none.
    pub(crate) async fn freeze(&self, slot: &Slot, running: &Running) -> Result<(), Problem> {
        let frozen = self.inner.native.pause(running).await;
        frozen.map_err(|problem| match problem.code {
            Code::NotReady => refusal::restless(problem, &slot.label()),
            _ => problem,
        })
    }

    /// After a daemon that ended in the middle of it.
    pub(crate) async fn finish_anew(&self, slot: &Arc<Slot>, record: &Record) -> Result<(), Problem> {
        let deadline = record.sandbox.expires.map_or(u64::MAX, |expires| {
            self.inner.native.deadline_after(lifetime::left(expires, store::now()))
        });
        self.make_anew(slot, record, deadline).await
    }

    /// Makes the processes of a sandbox, in the state its record says.
    async fn make_anew(&self, slot: &Arc<Slot>, record: &Record, deadline: u64) -> Result<(), Problem> {
        match self.try_anew(slot, record, deadline).await {
            Ok(()) => self.set_restarting(slot, false).await,
            Err(problem) => {
                self.transition(slot, Move::to(State::Failed).because(&problem.detail)).await?;
                Err(problem)
            }
        }
    }

    async fn try_anew(&self, slot: &Arc<Slot>, record: &Record, deadline: u64) -> Result<(), Problem> {
        let request = self.kept_request(slot).await?;
        let order = Provision {
            id: slot.id,
            request: &request,
            deadline: Some(deadline),
            throwaway: false,
            first: None,
        };
        let Provisioned { running, .. } = self.inner.native.start(order).await?;
        if record.sandbox.state == State::Paused {
            self.freeze(slot, &running).await?;
        }
        let CreateRequest { context, limits, net, .. } = request;
        let seat =
            self.seat(slot, Processes { running, context, limits: &limits, wiring: net.wiring(), deadline });
        seat.set_active(record.sandbox.state == State::Active);
        Ok(())
    }

    pub(crate) async fn set_restarting(&self, slot: &Slot, restarting: bool) -> Result<(), Problem> {
        let written = self.inner.store.set_restarting(slot.id, restarting).await;
        written.map_err(|error| refusal::store(&error))
    }
}
