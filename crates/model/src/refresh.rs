//! Refresh: what a sandbox changed, laid over the present.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SnapshotId;
use crate::promotion::{Assessment, Resolutions};
use crate::sandbox::{Actor, Sandbox};

/// How a sandbox is to be brought up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RefreshRequest {
    pub resolutions: Resolutions,
    /// Only say what would be done.
    pub dry_run: bool,
    pub actor: Actor,
}

/// What became of it. The assessment tells each change of the sandbox as it stands to the present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Refreshed {
    /// It stands on the present. What it was before can be had back from a snapshot.
    Done { sandbox: Box<Sandbox>, before: SnapshotId, assessment: Assessment },
    /// Nothing has changed in the workspace since it was frozen.
    Current { captured: Timestamp },
    /// It was only asked what would be done.
    Planned { assessment: Assessment },
    /// Something stands in the way. The sandbox is as it was.
    Blocked { assessment: Assessment },
}
