//! How far a promotion went: one stage after the other, and what each of them did.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Promoted, Promotion};
use crate::config::{Check, Config, Stage};
use crate::exec::{Outcome, Text};
use crate::id::{Name, PromotionId};
use crate::problem::Problem;
use crate::sandbox::Actor;
use crate::verdict::{Judgement, VerifyStep};

/// The way of a promotion, and how far it was walked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Walk {
    pub promotion: PromotionId,
    pub plan: Plan,
    /// All that the sandbox changed in the workspace was promoted, not only some paths.
    pub whole: bool,
    /// Every time that a stage was entered, oldest first.
    pub visits: Vec<Visit>,
}

/// What `zeno.yaml` of the real workspace declared before anything was applied: what is promoted cannot choose its stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// `local` is the first.
    pub stages: Vec<Stage>,
    pub checks: Vec<Check>,
}

impl Plan {
    #[must_use]
    pub fn of(config: Config) -> Self {
        let Config { checks, promotion } = config;
        let mut stages = promotion.stages;
        if !stages.first().is_some_and(Stage::is_local) {
            stages.insert(0, Stage::local());
        }
        Self { stages, checks: checks.0 }
    }
}

/// One time that a stage was entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Visit {
    pub stage: Name,
    pub state: VisitState,
    /// Why it did not pass, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub actor: Actor,
    pub began: Timestamp,
    /// Of all its commands.
    pub duration_ms: u64,
    /// Its commands, in the order in which they were run.
    pub errands: Vec<Errand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VisitState {
    /// Under way. After a crash it becomes `interrupted`.
    Running,
    Passed,
    /// It did not pass, and declares nothing that takes it back.
    Failed,
    /// It did not pass, or was undone, and has been taken back.
    RolledBack,
    /// It did not pass, or was to be undone, and could not be taken back.
    RollbackFailed,
    /// The daemon ended in the middle of it. It counts as failed, and has not been taken back.
    Interrupted,
}

impl VisitState {
    /// Is something of it out there that undoing has to take back?
    #[must_use]
    pub fn is_out(self) -> bool {
        match self {
            Self::Running | Self::Passed | Self::RollbackFailed | Self::Interrupted => true,
            Self::Failed | Self::RolledBack => false,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::RolledBack => "rolled back",
            Self::RollbackFailed => "rollback failed",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for VisitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One command of a stage, run on this machine as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Errand {
    #[serde(flatten)]
    pub task: Task,
    /// The line for `sh`.
    pub line: String,
    pub outcome: Judgement,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How it ended; absent where zeno could not even begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Outcome>,
    pub duration_ms: u64,
    /// The file with all that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Text>,
    /// The last lines that it wrote, where it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<String>,
}

/// What a command is to its stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum Task {
    Run,
    Check { check: Name },
    Rollback,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Check { check } => write!(f, "{check}"),
            Self::Rollback => f.write_str("rollback"),
        }
    }
}

/// What became of a promotion, and how far it went now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Walked {
    #[serde(flatten)]
    pub promoted: Promoted,
    /// The stages that were entered now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Visit>,
    /// The stages that were asked for and are still ahead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Stage>,
    /// Why it went no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Stopped {
    /// This stage did not pass. Those after it were not touched.
    Failed { stage: Name },
    /// A person has to agree before this stage.
    Approval { stage: Name },
}

/// A promotion and how it went out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Journey {
    #[serde(flatten)]
    pub promotion: Promotion,
    /// Every time that a stage was entered, oldest first.
    pub stages: Vec<Visit>,
}

/// One line while a promotion is walked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PromoteStep {
    /// Another promotion of the same folder is on its way; this one comes next.
    Waiting,
    /// What is to be promoted is judged first.
    Judging {
        step: VerifyStep,
    },
    /// It is in the worktree.
    Applied {
        promotion: PromotionId,
    },
    Entered {
        stage: Name,
    },
    /// A command of the stage begins.
    Started {
        stage: Name,
        task: Task,
    },
    Ended {
        stage: Name,
        errand: Box<Errand>,
    },
    Left {
        visit: Box<Visit>,
    },
    /// The last line.
    Walked {
        walked: Box<Walked>,
    },
    /// It failed; nothing follows.
    Problem {
        problem: Problem,
    },
}
