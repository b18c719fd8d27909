//! Telling a command that was killed for want of memory from one that failed by itself.

use backends::native::Native;
use model::SandboxId;
use model::exec::Outcome;
use model::units::Size;
use tokio::net::UnixStream;

/// A command of a sandbox, as its init tells of it.
#[derive(Debug)]
pub struct Conversation {
    /// Speaks the frames of [`model::exec`].
    pub stream: UnixStream,
    pub memory: MemoryWatch,
}

/// What the kernel had killed in a sandbox when one of its commands began.
///
/// Init is not asked: it shares its user with the command. The default watches nothing, for a sandbox without a limit.
#[derive(Debug, Default)]
pub struct MemoryWatch(Option<Watch>);

#[derive(Debug)]
struct Watch {
    native: Native,
    id: SandboxId,
    limit: Size,
    killed_before: u64,
}

impl MemoryWatch {
    /// For a command that is about to start.
    pub(crate) fn begin(native: &Native, id: SandboxId, limit: Option<Size>) -> Self {
        let begin = |limit| {
            let killed_before = killed(native, id)?;
            Some(Watch { native: native.clone(), id, limit, killed_before })
        };
        Self(limit.and_then(begin))
    }

    /// For a command that started with its sandbox.
    pub(crate) fn since_birth(native: &Native, id: SandboxId, limit: Option<Size>) -> Self {
        Self(limit.map(|limit| Watch { native: native.clone(), id, limit, killed_before: 0 }))
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
        match &self.0 {
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
