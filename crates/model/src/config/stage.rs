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

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    pub name: Name,
    /// A line for `sh` that carries the change there. Every stage but `local` has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Names of checks that have to pass before it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub checks: BTreeSet<Name>,
    /// A line for `sh` that takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// Who has to agree before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// After this time `run` is ended and counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

impl Stage {
    /// The stage that applies a change to the worktree.
    pub const LOCAL: &str = "local";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// A person, not an agent and no automation.
    Human,
}
