//! What a sandbox cannot represent or enforce, said in plain sight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One honest shortcoming of a sandbox: shown by `zeno status`, never hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    pub kind: CaveatKind,
    /// A whole sentence for a person.
    pub text: String,
    /// The path it is about, if it is about one (lossy where the name is not UTF-8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Caveat {
    #[must_use]
    pub fn new(kind: CaveatKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), path: None }
    }

    #[must_use]
    pub fn at(kind: CaveatKind, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), path: Some(path.into()) }
    }
}

/// What of the machine a sandbox reads as it is now. True of every sandbox, so it is told once, and not as a caveat
/// of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadLive {
    /// All but the frozen workspace: system, home, other folders.
    Rest,
    /// There is no frozen workspace.
    All,
}

impl ReadLive {
    /// For a person.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Rest => "the rest of the machine is read live",
            Self::All => "the whole machine is read live",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaveatKind {
    /// A file in the workspace could not be captured faithfully.
    Capture,
    /// Part of the machine is read live and may change under the sandbox.
    Live,
    /// A mount of this machine is missing, read-only or owned differently.
    View,
    /// A limit is not enforced, or less strictly than asked.
    Limit,
    /// The network is more open than the default.
    Network,
    /// Users, permissions or devices differ from the real machine.
    Privilege,
    /// What ran in the sandbox it was made from does not run in it.
    Processes,
    /// The checks of the sandbox are not those that it was judged by.
    Checks,
    /// The state that was judged holds more than what became real.
    Verdict,
    /// Commits made inside do not come along.
    Commits,
    /// State would be lost in a case where a user might expect it to be kept.
    Durability,
}
