//! What went wrong, in one form for every face: a stable code, a sentence, the causes, what to do next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An `application/problem+json` body (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    pub code: Code,
    /// The HTTP status.
    pub status: u16,
    /// What failed.
    pub detail: String,
    /// Why, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What to do next, with the exact command where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl Problem {
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            status: code.http_status(),
            detail: detail.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Keeps an error's message and its whole chain of causes.
    #[must_use]
    pub fn from_error(code: Code, error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        Self { causes: causes.map(ToString::to_string).collect(), ..Self::new(code, error.to_string()) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Stable words for programs to match on. They only grow in number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request makes no sense as written.
    BadRequest,
    /// Missing or wrong token.
    Unauthorized,
    /// A foreign Host or Origin.
    Forbidden,
    NotFound,
    /// Another sandbox has this name.
    NameTaken,
    /// The sandbox is in a state in which this cannot be done.
    NotReady,
    /// A limit was asked for that this machine cannot enforce.
    LimitUnenforceable,
    /// This machine's kernel or settings do not allow it.
    MachineUnable,
    /// Policy forbids it.
    Refused,
    /// Reality has changed in the meantime.
    Conflict,
    /// The workspace is not there (any more).
    WorkspaceGone,
    /// No room on the disk that holds zeno's state.
    DiskFull,
    /// The body is larger than is taken.
    TooLarge,
    /// The command's program is not there.
    ProgramNotFound,
    /// The command's program may not be executed, or is none.
    ProgramNotExecutable,
    /// zeno itself failed.
    Internal,
}

impl Code {
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::NameTaken | Self::NotReady | Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::LimitUnenforceable
            | Self::MachineUnable
            | Self::Refused
            | Self::WorkspaceGone
            | Self::ProgramNotFound
            | Self::ProgramNotExecutable => 422,
            Self::Internal => 500,
            Self::DiskFull => 507,
        }
    }

    /// The exit code of the command line for this problem.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::BadRequest | Self::NameTaken | Self::TooLarge | Self::ProgramNotExecutable => Exit::Usage,
            Self::NotReady => Exit::NotReady,
            Self::Conflict => Exit::Conflict,
            Self::Unauthorized
            | Self::Forbidden
            | Self::LimitUnenforceable
            | Self::MachineUnable
            | Self::Refused => Exit::Refused,
            Self::NotFound | Self::WorkspaceGone | Self::ProgramNotFound => Exit::NotFound,
            Self::DiskFull | Self::Internal => Exit::Internal,
        }
    }
}

/// What zeno's own verbs exit with. `run` and `exec` return the command's own code, 126 and 127 as a shell would, and 125
/// for anything else here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    /// A check or verdict failed or is inconclusive.
    Failed = 1,
    Usage = 2,
    NotReady = 3,
    /// By policy or limits.
    Refused = 4,
    Conflict = 5,
    NotFound = 6,
    /// zeno itself failed.
    Internal = 7,
}
