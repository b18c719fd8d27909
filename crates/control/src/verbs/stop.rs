//! `stop`: no processes, layers kept.

use model::{Problem, Sandbox, State};

use crate::control::Control;
use crate::refusal;
use crate::slots::Slot;
use crate::store::Move;

impl Control {
    /// Ends every process of a sandbox and keeps what it wrote.
    pub async fn stop(&self, which: &str) -> Result<Sandbox, Problem> {
        let slot = self.find(which, "stop").await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let sandbox = control.record(&slot).await?.sandbox;
            match sandbox.state {
                State::Ready | State::Active | State::Paused => {
                    control.halt(&slot, Move::to(State::Stopped)).await
                }
                State::Requested
                | State::Provisioning
                | State::Stopped
                | State::Unreachable
                | State::Expired
                | State::Failed
                | State::Destroying
                | State::Destroyed => Err(refusal::not_ready(&sandbox, "stop")),
            }
        })
        .await
    }

    /// Ends the processes and records why. Needs the sandbox's turn.
    pub(crate) async fn halt(&self, slot: &Slot, change: Move) -> Result<Sandbox, Problem> {
        let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
        // From here on commands wait for the turn, and then learn that it is stopped.
        seat.set_active(false);
        self.inner.native.note_execs(&seat.running).await?;
        self.inner.native.stop(&seat.running).await?;
        slot.rise();
        Ok(self.transition(slot, change).await?.sandbox)
    }
}
