//! `pause` and `resume`.

use model::{Problem, Sandbox, State};

use crate::control::Control;
use crate::refusal;
use crate::store::Move;

impl Control {
    /// Freezes every process of a sandbox; memory is kept.
    pub async fn pause(&self, which: &str) -> Result<Sandbox, Problem> {
        let slot = self.find(which, "pause").await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let (record, seat) = control.running(&slot, "pause").await?;
            // Recorded first: a sandbox that is called paused and runs can be resumed, one that is called active
            // and is frozen would look hung.
            let moved = control.transition(&slot, Move::to(State::Paused)).await?;
            seat.set_active(false);
            if let Err(problem) = control.freeze(&slot, &seat.running).await {
                control.transition(&slot, Move::to(record.sandbox.state).because(&problem.detail)).await?;
                seat.set_active(record.sandbox.state == State::Active);
                return Err(problem);
            }
            Ok(moved.sandbox)
        })
        .await
    }

    /// Lets the processes of a paused sandbox go on.
    pub async fn resume(&self, which: &str) -> Result<Sandbox, Problem> {
        let slot = self.find(which, "resume").await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let record = control.record(&slot).await?;
            if record.sandbox.state != State::Paused {
                return Err(refusal::not_ready(&record.sandbox, "resume"));
            }
            let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
            control.inner.native.resume(&seat.running).await?;
            let to = if record.used { State::Active } else { State::Ready };
            let moved = control.transition(&slot, Move::to(to)).await?;
            seat.set_active(record.used);
            Ok(moved.sandbox)
        })
        .await
    }
}
