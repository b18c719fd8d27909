//! `extend`: more time, or less.

use model::units::Span;
use model::{Problem, Sandbox, State};

use crate::control::Control;
use crate::{lifetime, refusal, store};

impl Control {
    /// Sets the end of a sandbox's time to this long from now.
    pub async fn extend(&self, which: &str, ttl: Span) -> Result<Sandbox, Problem> {
        let slot = self.find(which, EXTEND).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let mut sandbox = control.record(&slot).await?.sandbox;
            match sandbox.state {
                State::Ready | State::Active | State::Paused => {
                    let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
                    let deadline = control.inner.native.deadline_after(ttl.0);
                    control.inner.native.set_deadline(&seat.running, Some(deadline)).await?;
                    seat.set_deadline(deadline);
                }
                // It has no process whose deadline could be set, and may still be removed when its time is over.
                State::Stopped => {}
                State::Requested
                | State::Provisioning
                | State::Unreachable
                | State::Expired
                | State::Failed
                | State::Destroying
                | State::Destroyed => return Err(refusal::not_ready(&sandbox, EXTEND)),
            }
            let expires = lifetime::expires(store::now(), ttl.0);
            let written = control.inner.store.set_expires(slot.id, expires).await;
            written.map_err(|error| refusal::store(&error))?;
            sandbox.expires = Some(expires);
            Ok(sandbox)
        })
        .await
    }
}

const EXTEND: &str = "extend the time of";
