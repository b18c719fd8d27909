//! Commits made inside, and where they are to be found outside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Text;

/// What becomes of commits made inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Commits {
    /// They come along, unless only some paths are asked for.
    #[default]
    Bring,
    /// They stay where they are: only files are promoted.
    Leave,
}

/// A branch, tag, detached HEAD or stash of the sandbox that is not where it was, brought into the real repository under a name
/// of its own. No ref of the user's is touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitRef {
    /// What it is called inside: `refs/heads/main`, `refs/tags/v1`, `HEAD` or `stash@{0}`.
    pub inside: String,
    /// What it is called in the real repository: `refs/zeno/<sandbox>/heads/main`.
    pub outside: String,
    /// The commit, or tag, that it stands for.
    pub tip: String,
    /// How many commits lead to it that no ref of the real repository has.
    pub commits: u64,
    /// The git folder of the repository, from the workspace, if it is not the workspace's own: that of a submodule, or of
    /// another repository in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Text>,
}

impl CommitRef {
    #[must_use]
    pub fn is_stash(&self) -> bool {
        self.inside.starts_with("stash@")
    }

    /// What people call it: `main`, `v1`, `HEAD`.
    #[must_use]
    pub fn short(&self) -> &str {
        let folders = ["refs/heads/", "refs/tags/"];
        folders.iter().find_map(|folder| self.inside.strip_prefix(folder)).unwrap_or(&self.inside)
    }
}
