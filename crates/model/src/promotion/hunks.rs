//! Lines of a text in which two changes are in each other's way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Text;

/// One place of a text in conflict, on all sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// What both sides started from; absent if there was nothing, or nobody knows any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Excerpt>,
    /// The sandbox's; absent if it has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Excerpt>,
    /// Reality's; absent if it has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Excerpt>,
}

/// Lines that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// The number of its first line, from 1. Of no lines: of the line before which they would stand.
    pub first: u64,
    /// How many lines there are, told or not.
    pub count: u64,
    /// The first of them, with their ends.
    pub lines: Vec<Text>,
}

impl Excerpt {
    /// How many of its lines are not told.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.count.saturating_sub(self.lines.len() as u64)
    }
}
