//! A command's conversation as lines of JSON, for callers without frames (curl), and the lines of a log.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use model::exec::{Exec, Outcome, Progress};
use model::{ExecId, Problem, Sandbox, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of an `application/x-ndjson` conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Line {
    Progress {
        progress: Progress,
    },
    /// Of `run`: the sandbox is made, the command comes next.
    Sandbox {
        sandbox: Box<Sandbox>,
    },
    Started {
        exec: Exec,
    },
    Stdout(Output),
    Stderr(Output),
    /// The command ended; only `removed` can follow.
    Ended {
        outcome: Outcome,
    },
    /// It failed; nothing follows.
    Problem {
        problem: Problem,
    },
    /// The throwaway sandbox is gone.
    Removed {
        /// What it wrote, where its command ran out of time or memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<Box<Snapshot>>,
    },
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    pub time: Timestamp,
    pub exec: ExecId,
    pub stream: Stream,
    #[serde(flatten)]
    pub output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Bytes a command wrote: `text` where they are UTF-8, else `bytes` in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    Text(String),
    Bytes(String),
}

impl Output {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(BASE64_STANDARD.encode(bytes)),
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, BadOutput> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Bytes(encoded) => BASE64_STANDARD.decode(encoded).map_err(BadOutput),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("output is not valid base64")]
pub struct BadOutput(#[source] base64::DecodeError);

/// A value as one line.
pub(crate) fn encode<T: Serialize>(value: &T) -> bytes::Bytes {
    let mut line =
        serde_json::to_vec(value).expect("wire types have string keys and cannot fail to serialise");
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &Line, json: &str) {
        assert_eq!(serde_json::to_string(line).unwrap(), json);
        assert_eq!(&serde_json::from_str::<Line>(json).unwrap(), line);
    }

    #[test]
    fn lines_are_flat() {
        check(&Line::Stdout(Output::of(b"hi\n")), r#"{"kind":"stdout","text":"hi\n"}"#);
        check(&Line::Stderr(Output::of(b"\xff")), r#"{"kind":"stderr","bytes":"/w=="}"#);
        check(
            &Line::Ended { outcome: Outcome::Exited { code: 3 } },
            r#"{"kind":"ended","outcome":{"kind":"exited","code":3}}"#,
        );
        check(&Line::Removed { snapshot: None }, r#"{"kind":"removed"}"#);
    }

    #[test]
    fn output_keeps_every_byte() {
        for bytes in [&b""[..], b"text", b"\xff\x00"] {
            assert_eq!(Output::of(bytes).to_bytes().unwrap(), bytes);
        }
    }
}
