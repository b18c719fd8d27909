//! Stages: how far a change goes out, step by step.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::Name;
use crate::units::Span;

/// How a change that was found good goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Promotion {
    /// Walked one after the other, as far as is asked for. `local`, which applies the change to the worktree, is always
    /// the first and need not be listed.
    pub stages: Vec<Stage>,
}

/// One step of the way. Its commands run on this machine as it is, in the worktree, with the environment of whoever
/// promotes: a stage may need the network and credentials. They find `ZENO_STAGE`, `ZENO_PROMOTION` and `ZENO_SANDBOX` set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    pub name: Name,
    /// A line for `sh` that carries the change there. Every stage but `local` has one. What it leaves running has to write
    /// elsewhere than to its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Names of checks that have to pass after `run`, or after the change was applied to the worktree. They run here, not
    /// in a sandbox; one that can only pass here may ask for `ZENO_STAGE`, which is not set in a sandbox.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub checks: BTreeSet<Name>,
    /// A line for `sh` that takes it back, when `run` or a check does not pass and when the promotion is undone. What
    /// `local` did is undone by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// Who has to agree before. `zeno promote` asks at a terminal. This keeps agents and automation from going on by
    /// themselves; it is no lock: whatever runs with your own rights can speak for you.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// After this time `run`, or `rollback`, is ended and counts as failed; 30m if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

impl Stage {
    /// The stage that applies a change to the worktree.
    pub const LOCAL: &str = "local";
    /// `run` and `rollback` are ended after this time where nothing else is said.
    pub const TIMEOUT: Span = Span::from_secs(1800);

    /// The first stage, where it is not listed.
    #[must_use]
    pub fn local() -> Self {
        let name = Self::LOCAL.parse().expect("five letters");
        let (run, checks, rollback, approval, timeout) = Default::default();
        Self { name, run, checks, rollback, approval, timeout }
    }

    #[must_use]
    pub fn is_local(&self) -> bool {
        self.name.as_str() == Self::LOCAL
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// A person, not an agent and no automation, as far as whoever asks says which it is.
    Human,
}
