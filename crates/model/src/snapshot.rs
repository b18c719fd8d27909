//! Snapshots: named stacks of layers, and what can be done with them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::{Text, Variable};
use crate::id::{Name, SandboxId, SnapshotId};
use crate::limits::Limits;
use crate::net::Net;
use crate::problem::Problem;
use crate::sandbox::{Actor, Sandbox};
use crate::units::Size;

/// All that a sandbox had written at one moment. It outlives the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    pub id: SnapshotId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Of which sandbox it was made. That one may be gone.
    pub sandbox: SandboxId,
    /// What that sandbox was called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    /// The snapshot the sandbox stood on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SnapshotId>,
    pub reason: SnapshotReason,
    pub created: Timestamp,
    /// When zeno removes it by itself. Only those that nobody asked for have an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Bytes it holds beyond its parent. Absent until they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// How many layers it is made of.
    pub depth: u64,
    /// The folder that is frozen in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Text>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub actor: Actor,
}

/// Why a snapshot was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotReason {
    /// Somebody asked for it.
    Asked,
    /// Sandboxes were forked from it.
    Fork,
    /// Checks were run on it.
    Verify,
    /// Candidates of a race started from it.
    Race,
    /// What the sandbox was before it was brought up to date.
    Refresh,
    /// What the sandbox changed, or a part of it, laid over the present.
    Rebase,
    /// The command of a throwaway sandbox ran out of time.
    Timeout,
    /// The command of a throwaway sandbox ran out of memory.
    OutOfMemory,
    /// The time of the sandbox was over, and it was to be removed then.
    Expired,
}

impl SnapshotReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Fork => "fork",
            Self::Verify => "verify",
            Self::Race => "race",
            Self::Refresh => "refresh",
            Self::Rebase => "rebase",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::Expired => "expired",
        }
    }

    /// Did somebody ask for exactly this?
    #[must_use]
    pub fn is_asked(self) -> bool {
        match self {
            Self::Asked => true,
            Self::Fork
            | Self::Verify
            | Self::Race
            | Self::Refresh
            | Self::Rebase
            | Self::Timeout
            | Self::OutOfMemory
            | Self::Expired => false,
        }
    }

    /// Was it made of the sandbox as it was, so that the sandbox stands on it?
    #[must_use]
    pub fn is_as_it_was(self) -> bool {
        self != Self::Rebase
    }
}

impl fmt::Display for SnapshotReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A snapshot to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub labels: BTreeMap<String, String>,
    pub actor: Actor,
}

/// Where a sandbox is to be taken back to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RollbackRequest {
    /// Id, name or the beginning of an id; absent: the snapshot it stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// A sandbox to make of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RestoreRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Added to those of the sandbox the snapshot was made of.
    pub labels: BTreeMap<String, String>,
    /// In place of those of the sandbox the snapshot was made of, one by one.
    pub limits: Limits,
    /// In place of what the sandbox could reach that the snapshot was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Net>,
    /// Added to its environment; a later entry of the same name wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    pub actor: Actor,
}

/// Sandboxes to make of another, all on the same layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForkRequest {
    /// How many.
    pub count: u32,
    /// What they are called: one of several has its number behind it, `name-1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub labels: BTreeMap<String, String>,
    pub actor: Actor,
}

impl Default for ForkRequest {
    fn default() -> Self {
        Self { count: 1, name: None, labels: BTreeMap::new(), actor: Actor::default() }
    }
}

/// What became of a fork. One that failed does not keep the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forks {
    /// What all of them were made from.
    pub snapshot: Snapshot,
    pub forks: Vec<Forked>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Forked {
    Made { sandbox: Box<Sandbox> },
    Failed { problem: Problem },
}

/// What nobody refers to any more, removed or, in a dry run, only found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Garbage {
    pub dry_run: bool,
    pub items: Vec<GarbageItem>,
    /// Bytes of all of them.
    pub size: Size,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GarbageItem {
    pub kind: GarbageKind,
    /// Its id or path.
    pub name: String,
    pub size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GarbageKind {
    /// A layer on which no sandbox and no snapshot stands.
    Layer,
    /// The frozen copy of a workspace that is gone.
    Capture,
    /// The folder of a sandbox that is gone, or a part of one that was never finished.
    Leftover,
    /// What a promotion displaced, that was taken back or is too old to be.
    Promotion,
}
