//! Races: several candidates from one state, checked and compared; one winner.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diff::Lines;
use crate::exec::{Outcome, Text};
use crate::id::{Name, RaceId, SandboxId, SnapshotId, VerdictId};
use crate::net::Net;
use crate::problem::Problem;
use crate::sandbox::{Actor, CreateRequest};
use crate::units::{Size, Span};
use crate::verdict::Judgement;

/// A race to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RaceRequest {
    /// The sandbox or snapshot whose state all start from; absent: a new sandbox, made as `create` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its limits hold for the candidates also where they start from something else.
    pub create: CreateRequest,
    /// What candidates may reach; absent: as `create` says, or as what they start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Net>,
    pub candidates: Vec<Candidate>,
    /// Names of checks in the workspace's `zeno.yaml`, with what they need. None, and no `commands`: all of them.
    pub checks: Vec<Name>,
    /// Further commands that have to exit with 0.
    pub commands: Vec<String>,
    /// A line for `sh` whose last line of output is a number: the more, the better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    pub pick: Pick,
    /// How long the command of a candidate may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Commands at the same time; as many as there are processors if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    pub actor: Actor,
}

/// One that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub name: Name,
    pub attempt: Attempt,
}

/// What a candidate does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Attempt {
    /// Runs this line for `sh`.
    Command { run: String },
    /// Applies this patch with `git apply`.
    Patch { patch: Text },
    /// Makes the tracked files those of this commit, branch or tag.
    Ref { commit: String },
    /// Nothing more: the sandbox is there already.
    Sandbox { sandbox: String },
}

/// Who wins among those that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// The one that took the least time, checks included.
    Fastest,
    /// The one that changed the fewest lines.
    #[default]
    Smallest,
    /// The one with the highest score.
    Score,
    /// Nobody by itself: a person decides.
    Ask,
}

/// What came of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Race {
    pub id: RaceId,
    pub pick: Pick,
    /// Absent if none passed, or if it is for a person to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<Name>,
    /// The sandbox that holds what the winner did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner_sandbox: Option<SandboxId>,
    /// The state all started from; absent if all were there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Text>,
    pub checks: Vec<Name>,
    /// In the order in which they were given.
    pub entries: Vec<Entry>,
    pub actor: Actor,
    pub created: Timestamp,
    pub duration_ms: u64,
}

/// What came of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub name: Name,
    pub outcome: Judgement,
    /// Why it did not win, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// It stays until its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// How its own command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictId>,
    pub checks_passed: u64,
    /// Of its command and its checks.
    pub duration_ms: u64,
    /// Files of the workspace that it changed, without what git ignores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The most memory that its command used: all its processes together where it has a memory limit of its own, else
    /// the largest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Size>,
    /// The file with all that its command wrote, or the check by which it lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Text>,
    /// The last lines of what failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<String>,
}

/// One line while a race is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RaceStep {
    Begun {
        race: RaceId,
        candidates: Vec<Name>,
        checks: Vec<Name>,
    },
    /// A candidate has come further.
    Moved {
        candidate: Name,
        phase: Phase,
    },
    Ended {
        entry: Box<Entry>,
    },
    /// The last line.
    Race {
        race: Box<Race>,
    },
    /// It failed; nothing follows.
    Problem {
        problem: Problem,
    },
}

/// How far a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum Phase {
    /// Until there is room for it.
    Waiting,
    /// Its own command.
    Running,
    Checking {
        ended: u64,
        failed: u64,
    },
    Scoring,
}
