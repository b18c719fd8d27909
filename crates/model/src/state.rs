//! The life of a sandbox: every state, and the one table of moves between them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Asked for; nothing exists yet.
    Requested,
    /// Being made, or being started again from its layers.
    Provisioning,
    /// Running; no command has been run in it since it was made or started.
    Ready,
    /// Running, and used.
    Active,
    /// Every process is frozen; memory is kept.
    Paused,
    /// No process; its layers are kept.
    Stopped,
    /// Its host or provider does not answer.
    Unreachable,
    /// Its time ran out; no process, its layers are kept.
    Expired,
    /// Something went wrong; the reason is in the record. Its layers are kept if there are any.
    Failed,
    /// Being removed.
    Destroying,
    /// Gone. The record stays for the history.
    Destroyed,
}

impl State {
    pub const ALL: [Self; 11] = [
        Self::Requested,
        Self::Provisioning,
        Self::Ready,
        Self::Active,
        Self::Paused,
        Self::Stopped,
        Self::Unreachable,
        Self::Expired,
        Self::Failed,
        Self::Destroying,
        Self::Destroyed,
    ];

    /// The one table of moves. Whatever is not here is refused.
    #[must_use]
    pub fn next(self) -> &'static [Self] {
        use State::{
            Active, Destroyed, Destroying, Expired, Failed, Paused, Provisioning, Ready, Requested, Stopped,
            Unreachable,
        };
        match self {
            Requested => &[Provisioning, Failed, Destroying],
            Provisioning => &[Ready, Failed, Destroying],
            Ready => &[Active, Paused, Stopped, Unreachable, Expired, Failed, Destroying],
            Active => &[Paused, Stopped, Unreachable, Expired, Failed, Destroying],
            Paused => &[Ready, Active, Stopped, Unreachable, Expired, Failed, Destroying],
            Stopped | Expired | Failed => &[Provisioning, Destroying],
            Unreachable => &[Ready, Expired, Failed, Destroying],
            Destroying => &[Destroyed],
            Destroyed => &[],
        }
    }

    #[must_use]
    pub fn can_become(self, next: Self) -> bool {
        self.next().contains(&next)
    }

    /// Has processes that can be talked to.
    #[must_use]
    pub fn is_running(self) -> bool {
        match self {
            Self::Ready | Self::Active => true,
            Self::Requested
            | Self::Provisioning
            | Self::Paused
            | Self::Stopped
            | Self::Unreachable
            | Self::Expired
            | Self::Failed
            | Self::Destroying
            | Self::Destroyed => false,
        }
    }

    /// Has processes, frozen or not, that an expiry or a stop has to end.
    #[must_use]
    pub fn has_processes(self) -> bool {
        self.is_running() || matches!(self, Self::Paused | Self::Provisioning)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Provisioning => "provisioning",
            Self::Ready => "ready",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Unreachable => "unreachable",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::Destroying => "destroying",
            Self::Destroyed => "destroyed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_but_the_last_can_be_destroyed() {
        for state in State::ALL {
            let mut seen = vec![state];
            let mut at = 0;
            while at < seen.len() {
                for next in seen[at].next() {
                    if !seen.contains(next) {
                        seen.push(*next);
                    }
                }
                at += 1;
            }
            assert!(seen.contains(&State::Destroyed), "{state} is a dead end");
        }
    }

    #[test]
    fn the_word_is_the_wire_form() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
