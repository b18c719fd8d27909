//! What happened, as CloudEvents 1.0.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{Name, PromotionId, RaceId, SandboxId, SnapshotId, VerdictId};
use crate::promotion::Counts;
use crate::sandbox::Actor;
use crate::snapshot::SnapshotReason;
use crate::state::State;
use crate::verdict::Judgement;

/// A CloudEvents 1.0 envelope. `sequence` grows by one with each event and is the cursor of `GET /v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub specversion: String,
    pub id: String,
    pub source: String,
    /// For example `dev.zeno.sandbox.ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of what it is about: a sandbox, a snapshot, a promotion, a verdict or a race.
    pub subject: String,
    pub time: Timestamp,
    pub sequence: u64,
    pub data: EventData,
}

/// What an event tells of; its `type` says which it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EventData {
    Transition(Transition),
    Snapshot(SnapshotChange),
    Promotion(PromotionChange),
    Verdict(VerdictGiven),
    Race(RaceEnded),
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

/// Something happened to, or by, a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotChange {
    pub snapshot: SnapshotId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Of which it was made, or which was taken back to it.
    pub sandbox: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    pub change: SnapshotChangeKind,
    pub reason: SnapshotReason,
    pub actor: Actor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotChangeKind {
    Made,
    Removed,
    /// A sandbox was taken back to it.
    RolledBack,
}

impl SnapshotChangeKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Removed => "removed",
            Self::RolledBack => "rolled-back",
        }
    }
}

/// What a sandbox changed was brought into reality, or taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromotionChange {
    pub promotion: PromotionId,
    /// Whose changes they are.
    pub sandbox: SandboxId,
    pub change: PromotionChangeKind,
    pub counts: Counts,
    /// Past a closed gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    pub actor: Actor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromotionChangeKind {
    Promoted,
    Undone,
}

impl PromotionChangeKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Promoted => "promoted",
            Self::Undone => "undone",
        }
    }
}

/// Checks said something of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictGiven {
    pub verdict: VerdictId,
    pub sandbox: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    pub outcome: Judgement,
    pub digest: Digest,
    pub actor: Actor,
}

/// A race is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceEnded {
    pub race: RaceId,
    /// Absent if none passed, or if it is for a person to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner_sandbox: Option<SandboxId>,
    /// How many took part.
    pub candidates: u64,
    pub actor: Actor,
}

impl EventData {
    /// The move of a sandbox, if it tells of one.
    #[must_use]
    pub fn transition(&self) -> Option<&Transition> {
        match self {
            Self::Transition(transition) => Some(transition),
            Self::Snapshot(_) | Self::Promotion(_) | Self::Verdict(_) | Self::Race(_) => None,
        }
    }

    fn kind(&self) -> String {
        match self {
            Self::Transition(transition) => format!("dev.zeno.sandbox.{}", transition.to),
            Self::Snapshot(change) => format!("dev.zeno.snapshot.{}", change.change.as_str()),
            Self::Promotion(change) => format!("dev.zeno.promotion.{}", change.change.as_str()),
            Self::Verdict(_) => "dev.zeno.verdict.given".to_owned(),
            Self::Race(_) => "dev.zeno.race.ended".to_owned(),
        }
    }

    fn subject(&self) -> String {
        match self {
            Self::Transition(transition) => transition.sandbox.to_string(),
            Self::Snapshot(change) => change.snapshot.to_string(),
            Self::Promotion(change) => change.promotion.to_string(),
            Self::Verdict(given) => given.verdict.to_string(),
            Self::Race(ended) => ended.race.to_string(),
        }
    }
}

impl From<Transition> for EventData {
    fn from(transition: Transition) -> Self {
        Self::Transition(transition)
    }
}

impl From<SnapshotChange> for EventData {
    fn from(change: SnapshotChange) -> Self {
        Self::Snapshot(change)
    }
}

impl From<PromotionChange> for EventData {
    fn from(change: PromotionChange) -> Self {
        Self::Promotion(change)
    }
}

impl From<VerdictGiven> for EventData {
    fn from(given: VerdictGiven) -> Self {
        Self::Verdict(given)
    }
}

impl From<RaceEnded> for EventData {
    fn from(ended: RaceEnded) -> Self {
        Self::Race(ended)
    }
}

impl Event {
    #[must_use]
    pub fn of(sequence: u64, time: Timestamp, data: impl Into<EventData>) -> Self {
        let data = data.into();
        Self {
            specversion: "1.0".to_owned(),
            id: sequence.to_string(),
            source: "/zeno/sandboxes".to_owned(),
            kind: data.kind(),
            subject: data.subject(),
            time,
            sequence,
            data,
        }
    }
}
