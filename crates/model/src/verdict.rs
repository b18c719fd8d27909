//! Verdicts: what checks said of one exact state.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::digest::Digest;
use crate::exec::{Outcome, Text};
use crate::id::{Name, SandboxId, SnapshotId, VerdictId};
use crate::problem::Problem;
use crate::sandbox::Actor;

/// What the checks said of a sealed state. It holds for exactly the state with this digest, and for no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub id: VerdictId,
    /// Pass only if every check passed.
    pub outcome: Judgement,
    /// The sandbox whose state was judged. It may be gone.
    pub sandbox: SandboxId,
    /// What that sandbox was called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    /// The sealed state.
    pub snapshot: SnapshotId,
    /// Of the sealed state: what it changed, and what it started from.
    pub digest: Digest,
    /// What the digest does not cover.
    pub excluded: Vec<Excluded>,
    /// In the order in which they are declared.
    pub checks: Vec<CheckResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    pub actor: Actor,
    pub created: Timestamp,
    /// Milliseconds from the sealing to the last check's end.
    pub duration_ms: u64,
}

/// The three answers there are. Only a pass opens a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    Pass,
    Fail,
    /// It could not be found out: no time, could not be run, now this and now that.
    Inconclusive,
}

impl Judgement {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Of several: one that failed decides, then one that is not known. Of none: nothing is known.
    #[must_use]
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = None;
        for one in all {
            whole = match (whole, one) {
                (Some(Self::Fail), _) | (_, Self::Fail) => Some(Self::Fail),
                (Some(Self::Inconclusive), _) | (_, Self::Inconclusive) => Some(Self::Inconclusive),
                (Some(Self::Pass) | None, Self::Pass) => Some(Self::Pass),
            };
        }
        whole.unwrap_or(Self::Inconclusive)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one check said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    pub name: Name,
    /// Its command.
    pub run: String,
    /// Of all that is declared of it: a check of the same name that is declared differently is another check.
    pub definition: Digest,
    pub outcome: Judgement,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How its command ended, each time that it was run.
    pub runs: Vec<CheckRun>,
    /// The last lines that it wrote, where it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<String>,
}

impl CheckResult {
    /// Why it did not pass, in one line.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        Some(self.reason.as_ref()?.told(self.runs.first().and_then(|run| run.exit.as_ref())))
    }
}

/// One run of a check's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    /// Absent where it could not even be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Outcome>,
    pub duration_ms: u64,
    /// The file with all that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Text>,
}

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reason {
    /// It ended in another way than is expected.
    Exit { expected: Vec<u8> },
    /// It did not write what is expected.
    Output { missing: String },
    /// It ran longer than it may.
    TimedOut,
    /// There was not enough memory.
    OutOfMemory,
    /// It could not be run, or not to its end.
    NotRun { why: String },
    /// Run again on the same state, it said something else.
    Flaky,
    /// A check that it needs did not pass.
    Needs { check: Name },
}

impl Reason {
    /// The same with how the command ended.
    #[must_use]
    pub fn told(&self, exit: Option<&Outcome>) -> String {
        match (self, exit) {
            (Self::Exit { .. }, Some(Outcome::Exited { code })) => format!("exit code {code}, {self}"),
            (Self::Exit { .. }, Some(Outcome::Signaled { signal })) => {
                format!("killed by signal {signal}, {self}")
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { expected } => {
                let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
                write!(f, "expected exit code {}", expected.join(" or "))
            }
            Self::Output { missing } => f.write_str(missing),
            Self::TimedOut => f.write_str("it ran longer than it may"),
            Self::OutOfMemory => f.write_str("it ran out of memory"),
            Self::NotRun { why } => write!(f, "it could not be run: {why}"),
            Self::Flaky => f.write_str("run again on the same state, it said something else"),
            Self::Needs { check } => write!(f, "`{check}`, which it needs, did not pass"),
        }
    }
}

/// What a state's digest does not cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Excluded {
    /// When files were changed or read.
    Times,
    /// Git's own folders, but for `HEAD`, branches and tags.
    GitFolders,
    /// What the sandbox did not write is read live from this machine: its system, home and ignored folders.
    Live,
    /// zeno was not allowed to read this path.
    Unread { path: Text },
}

impl fmt::Display for Excluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times => f.write_str("times of files"),
            Self::GitFolders => f.write_str("git's own folders, but for HEAD, branches and tags"),
            Self::Live => f.write_str("what is read live from this machine"),
            Self::Unread { path } => write!(f, "{} (it may not be read)", path.display()),
        }
    }
}

/// Which checks are to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyRequest {
    /// Names of checks in the workspace's `zeno.yaml`, with what they need. None, and no `commands`: all of them.
    pub checks: Vec<Name>,
    /// Further commands that have to exit with 0.
    pub commands: Vec<String>,
    pub actor: Actor,
}

/// One line while a state is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VerifyStep {
    /// The state is sealed; the checks come next.
    Sealed {
        snapshot: SnapshotId,
        digest: Digest,
        checks: Vec<Name>,
    },
    /// A check begins; not for the first time where it failed.
    Started {
        check: Name,
        again: bool,
    },
    Ended {
        result: CheckResult,
    },
    /// The last line.
    Verdict {
        verdict: Box<Verdict>,
    },
    /// It failed; nothing follows.
    Problem {
        problem: Problem,
    },
}

#[cfg(test)]
mod tests {
    use super::Judgement::{Fail, Inconclusive, Pass};
    use super::*;

    #[test]
    fn only_passes_make_a_pass() {
        for (all, whole) in [
            (&[Pass, Pass][..], Pass),
            (&[Pass, Inconclusive], Inconclusive),
            (&[Inconclusive, Fail, Pass], Fail),
            (&[], Inconclusive),
        ] {
            assert_eq!(Judgement::of_all(all.iter().copied()), whole, "{all:?}");
        }
    }
}
