//! The sandbox as users see it, and the request that makes one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caveat::{Caveat, ReadLive};
use crate::exec::{Context, Progress, Text};
use crate::id::{Name, SandboxId, SnapshotId};
use crate::limits::Limits;
use crate::net::{Net, NewSecret};
use crate::problem::Problem;
use crate::state::State;
use crate::units::Size;

/// What is asked for. Everything has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub workspace: WorkspaceChoice,
    pub net: Net,
    pub limits: Limits,
    /// Masked paths to show all the same, as in the mask list or absolute.
    pub unmask: Vec<String>,
    /// Secrets that stay outside. Their values are held in memory only, and taken out of what is kept of a request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<NewSecret>,
    /// Allow user namespaces inside (Chromium's own sandbox needs them).
    pub nested: bool,
    /// Whose sandbox it is to be, where that is somebody whom the machine may not know: commands are run as them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    pub context: Context,
    pub labels: BTreeMap<String, String>,
    pub actor: Actor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
}

/// A user with a home. One that this machine does not have exists in the sandbox only, and is no change of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub name: String,
    /// Absolute.
    pub home: Text,
}

impl Account {
    /// What it is called wrongly, if it is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        let first = self.name.bytes().next();
        let begins = first.is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !begins || self.name.len() > LONGEST_NAME || !self.name.bytes().all(is_plain) {
            return Some(
                "a user's name has up to 32 lower-case letters, digits, `_` and `-`, and begins with no digit",
            );
        }
        let home = &self.home.0;
        // Both files are lines with colons between their fields.
        let is_field = !home.iter().any(|byte| matches!(byte, b':' | b'\n' | 0));
        let is_straight =
            home.starts_with(b"/") && !home.split(|byte| *byte == b'/').any(|part| part == b"..");
        (!is_field || !is_straight || std::str::from_utf8(home).is_err())
            .then_some("a user's home is an absolute path without `..`, `:` and line breaks")
    }
}

/// As `useradd` has it.
const LONGEST_NAME: usize = 32;

/// Which folder is frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceChoice {
    /// The git worktree around the context's cwd, if there is one.
    #[default]
    Auto,
    /// This folder, git or not.
    Folder(Text),
    /// None: everything is read live.
    None,
}

/// Who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// A person.
    Adm,
    /// A coding agent, or another program that does not say what it is.
    #[default]
    Agt,
    /// Automation.
    Atm,
}

impl Actor {
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "adm" => Some(Self::Adm),
            "agt" => Some(Self::Agt),
            "atm" => Some(Self::Atm),
            _ => None,
        }
    }
}

/// A sandbox's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sandbox {
    pub id: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub state: State,
    /// Why it is in this state, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub backend: Backend,
    pub created: Timestamp,
    pub changed: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The frozen folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Text>,
    pub cwd: Text,
    pub net: Net,
    pub limits: Limits,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The snapshot it stands on: the last one made of it, or the one it was made from or taken back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotId>,
}

impl Sandbox {
    #[must_use]
    pub fn live(&self) -> ReadLive {
        if self.workspace.is_some() { ReadLive::Rest } else { ReadLive::All }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    Native,
}

/// What `zeno status` shows: the record, and how the sandbox stands to reality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    pub sandbox: Sandbox,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<Freshness>,
    /// What is not frozen.
    pub live: ReadLive,
    /// Paths hidden from the sandbox.
    pub masked: Vec<Masked>,
    /// Processes inside, init not counted. Absent where there are none to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes written by the sandbox.
    pub written: Size,
    /// Of a running sandbox with a memory limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// What listens on the real machine: the copy does not carry it.
    pub host_listeners: Vec<Listener>,
}

/// How a sandbox stands with its memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// Page cache included.
    pub used: Size,
    /// Processes killed for want of memory since it was made.
    pub killed: u64,
}

/// What a sandbox uses at a moment, and what it may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub time: Timestamp,
    /// Of its processes, those that have ended included.
    pub cpu_nanoseconds: u64,
    /// Processors it may use at once.
    pub cpus: f64,
    /// Of all its processes; what they share counts for each, unless it has a memory limit of its own.
    pub memory: Size,
    pub memory_total: Size,
    /// What it wrote.
    pub disk: Size,
    pub disk_total: Size,
}

/// How far a frozen workspace is behind the real one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freshness {
    pub captured: Timestamp,
    /// Paths in the workspace that moved on since, the first of them.
    pub behind: Vec<Text>,
    /// How many there are in all.
    pub behind_total: u64,
    /// Those of them that the sandbox has changed, too, the first of them. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// The real folder is no longer there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Paths that moved on in reality and were changed in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// The first of them.
    pub paths: Vec<Text>,
    pub total: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Masked {
    pub path: Text,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    pub address: String,
    pub port: u16,
}

/// One line while a sandbox is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CreateStep {
    Progress {
        progress: Progress,
    },
    /// The last line.
    Made {
        sandbox: Box<Sandbox>,
    },
    /// It failed; nothing follows.
    Problem {
        problem: Problem,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_stands_in_one_line_of_a_file() {
        let account = |name: &str, home: &str| Account { name: name.to_owned(), home: home.into() };
        assert_eq!(account("user", "/home/user").fault(), None);
        for (name, home) in [
            ("", "/home/user"),
            ("0x", "/home/user"),
            ("a:b", "/home/user"),
            ("a\nroot", "/home/user"),
            ("user", "home"),
            ("user", "/home/../root"),
            ("user", "/home/a:b"),
            ("user", "/home/a\nroot:x:0:0::/:/bin/sh"),
        ] {
            assert!(account(name, home).fault().is_some(), "{name:?} {home:?}");
        }
    }
}
