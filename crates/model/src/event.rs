//! What happened, as CloudEvents 1.0.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Name, SandboxId};
use crate::sandbox::Actor;
use crate::state::State;

/// A CloudEvents 1.0 envelope. `sequence` grows by one with each event and is the cursor of `GET /v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub specversion: String,
    pub id: String,
    pub source: String,
    /// For example `dev.zeno.sandbox.ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sandbox's id.
    pub subject: String,
    pub time: Timestamp,
    pub sequence: u64,
    pub data: Transition,
}

/// A sandbox went from one state to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    pub sandbox: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    pub to: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
}

impl Event {
    #[must_use]
    pub fn of(sequence: u64, time: Timestamp, transition: Transition) -> Self {
        Self {
            specversion: "1.0".to_owned(),
            id: sequence.to_string(),
            source: "/zeno/sandboxes".to_owned(),
            kind: format!("dev.zeno.sandbox.{}", transition.to),
            subject: transition.sandbox.to_string(),
            time,
            sequence,
            data: transition,
        }
    }
}
