//! Why a command ended, where its init cannot tell: it was killed for want of memory, or zeno ended the sandbox.

use std::sync::{Arc, OnceLock};

use backends::native::Native;
use model::SandboxId;
use model::exec::Outcome;
use model::units::Size;
use tokio::net::UnixStream;

use crate::slots::Seat;

/// A command of a sandbox, as its init tells of it.
#[derive(Debug)]
pub struct Conversation {
    /// Speaks the frames of [`model::exec`].
    pub stream: UnixStream,
    pub hindsight: Hindsight,
}

/// What the daemon will know of a command's end.
///
/// Init is not asked: it shares its user with the command. The default knows nothing, for a sandbox without a limit that
/// nobody ends.
#[derive(Debug, Default)]
pub struct Hindsight {
    memory: Option<Watch>,
    farewell: Farewell,
}

/// Why zeno itself ended a sandbox. Empty until it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Farewell(Arc<OnceLock<String>>);

impl Farewell {
    /// To be said before the first process ends. Only the first reason counts.
    pub(crate) fn say(&self, reason: &str) {
        self.0.get_or_init(|| reason.to_owned());
    }
}

/// What the kernel had killed in a sandbox when one of its commands began.
#[derive(Debug)]
struct Watch {
    native: Native,
    id: SandboxId,
    limit: Size,
    killed_before: u64,
}

impl Hindsight {
    /// For a command that is about to start.
    pub(crate) fn begin(native: &Native, seat: &Seat) -> Self {
        let id = seat.running.id;
        let begin = |limit| {
            let killed_before = killed(native, id)?;
            Some(Watch { native: native.clone(), id, limit, killed_before })
        };
        Self { memory: seat.memory.and_then(begin), farewell: seat.farewell.clone() }
    }

    /// For a command that started with its sandbox.
    pub(crate) fn since_birth(native: &Native, seat: &Seat) -> Self {
        let id = seat.running.id;
        let watch = |limit| Watch { native: native.clone(), id, limit, killed_before: 0 };
        Self { memory: seat.memory.map(watch), farewell: seat.farewell.clone() }
    }

    /// The outcome as it is to be told.
    #[must_use]
    pub fn judge(&self, outcome: Outcome) -> Outcome {
        let failed = match &outcome {
            Outcome::Exited { code } => *code != 0,
            Outcome::Signaled { .. } | Outcome::SandboxEnded { .. } => true,
            Outcome::TimedOut
            | Outcome::OutputLimit
            | Outcome::OutOfMemory { .. }
            | Outcome::NotStarted { .. } => false,
        };
        if let (Outcome::SandboxEnded { .. }, Some(reason)) = (&outcome, self.farewell.0.get()) {
            return Outcome::SandboxEnded { reason: reason.clone() };
        }
        match &self.memory {
            Some(watch) if failed && watch.has_killed() => {
                Outcome::OutOfMemory { code: outcome.exit_code(), limit: watch.limit }
            }
            Some(_) | None => outcome,
        }
    }
}

impl Watch {
    fn has_killed(&self) -> bool {
        killed(&self.native, self.id).is_some_and(|killed| killed > self.killed_before)
    }
}

fn killed(native: &Native, id: SandboxId) -> Option<u64> {
    match native.memory(id) {
        Ok(memory) => memory.map(|memory| memory.killed),
        // It is being removed: its counters went first.
        Err(error) => {
            tracing::debug!(sandbox = %id, error = &error as &dyn std::error::Error, "no count of kills");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ended_a_sandbox_says_why_and_of_other_ends_says_nothing() {
        let farewell = Farewell::default();
        let hindsight = Hindsight { memory: None, farewell: farewell.clone() };
        let silent = Outcome::SandboxEnded { reason: "its first process closed the conversation".to_owned() };
        assert_eq!(hindsight.judge(silent.clone()), silent);
        farewell.say("it wrote too much");
        farewell.say("later");
        let told = Outcome::SandboxEnded { reason: "it wrote too much".to_owned() };
        assert_eq!(hindsight.judge(silent), told);
        let exited = Outcome::Exited { code: 3 };
        assert_eq!(hindsight.judge(exited.clone()), exited);
    }
}
