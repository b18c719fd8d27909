//! What this machine can do for sandboxes, as `zeno doctor` reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Can sandboxes be made at all?
    pub usable: bool,
    pub checks: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Short and stable, for example `user-namespaces`.
    pub name: String,
    pub verdict: Finding,
    /// What was found, for example `6.18.44` or `v1: cpu memory pids`.
    pub found: String,
    /// What it costs that this is missing; empty when it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cost: String,
    /// The exact command or step that mends it; empty when there is nothing to mend or no way to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    Good,
    /// Works, with less than could be.
    Less,
    /// No sandbox without it.
    Missing,
}
