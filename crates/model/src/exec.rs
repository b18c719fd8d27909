//! Commands in a sandbox: what is asked, how the bytes travel, how it ended.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::ExecId;
use crate::units::{Size, Span};

/// Bytes that are nearly always text: an argument, a path, a variable. A JSON string, or an array of
/// numbers where it is not UTF-8, so that no name is beyond reach.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(pub Vec<u8>);

impl Text {
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    #[must_use]
    pub fn display(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Self {
        Self(text.into_vec())
    }
}

impl From<std::path::PathBuf> for Text {
    fn from(path: std::path::PathBuf) -> Self {
        Self(path.into_os_string().into_vec())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display().fmt(f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_seq(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl JsonSchema for Text {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A string, or an array of bytes where it is not UTF-8",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } }]
        })
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an array of bytes where it is not UTF-8")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        Ok(Text(bytes))
    }
}

/// Where a command finds itself: taken from the caller's shell when the sandbox is made, and changed for
/// one command by [`ExecRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    pub env: Vec<Variable>,
    /// Absolute.
    pub cwd: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// `name`, `uid` or `uid:gid`; the caller's own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

impl Context {
    /// The user's home, as its commands know it.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        let variable = self.env.iter().rev().find(|variable| variable.name.0 == b"HOME")?;
        Some(Path::new(variable.value.as_os_str()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    pub name: Text,
    pub value: Text,
}

/// A command to run in a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecRequest {
    /// The program, looked up in the `PATH` of the command's environment, and its arguments.
    pub argv: Vec<Text>,
    /// Added to the sandbox's environment; a later entry of the same name wins.
    pub env: Vec<Variable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Run on a terminal of this size instead of pipes. Standard error then arrives as standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tty: Option<Window>,
    /// Keep standard input open for `stdin` frames; otherwise it reads as empty.
    pub stdin: bool,
    /// End the command, and all it started, after this time. Its outcome is then `timed-out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// End the command when it has written this much. Its outcome is then `output-limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<Size>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub rows: u16,
    pub columns: u16,
}

/// A command as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    pub id: ExecId,
    pub argv: Vec<Text>,
    /// Its process id inside the sandbox.
    pub pid: i32,
    pub tty: bool,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// It ran longer than its `timeout`.
    TimedOut,
    /// It wrote more than its `output_limit`.
    OutputLimit,
    /// It failed after the kernel had killed a process of the sandbox, it or another, for want of memory. `code` is what
    /// a shell would report: 137 if the command itself was killed.
    OutOfMemory {
        code: i32,
        /// The sandbox's `memory`.
        limit: Size,
    },
    /// It never ran: no such program (127), not executable (126), or its cwd or user does not exist (125).
    NotStarted {
        code: i32,
        reason: String,
    },
    /// The sandbox ended first: stopped, destroyed, expired or crashed.
    SandboxEnded {
        reason: String,
    },
}

impl Outcome {
    /// What a shell would report, and what `zeno run` exits with.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Exited { code } | Self::NotStarted { code, .. } | Self::OutOfMemory { code, .. } => *code,
            Self::Signaled { signal } => 128 + signal,
            Self::TimedOut => 124,
            Self::OutputLimit => 128 + 25,
            Self::SandboxEnded { .. } => 125,
        }
    }
}

/// One piece of an attached command's conversation. The same frames travel between init and the daemon
/// and between the daemon and its clients: one byte of kind, four of length (little endian), payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// To the command: bytes for standard input. Empty means end of input.
    Stdin = 1,
    /// To the command: JSON [`Window`].
    Resize = 2,
    /// To the command: JSON signal number, sent to the command's process group.
    Signal = 3,
    /// To init: the JSON request that opens a conversation.
    Request = 4,
    /// From the command: bytes.
    Stdout = 16,
    /// From the command: bytes.
    Stderr = 17,
    /// JSON [`Exec`]: it runs.
    Started = 18,
    /// JSON [`Outcome`]: it ended. Nothing follows but `Removed`.
    Ended = 19,
    /// JSON [`Progress`].
    Progress = 20,
    /// JSON [`crate::Problem`]: it failed, nothing follows.
    Problem = 21,
    /// Of a throwaway sandbox: everything of it is gone. Empty, or the JSON [`crate::Snapshot`] in which what it wrote is
    /// kept, because its command ran out of time or memory.
    Removed = 22,
    /// From init: the JSON answer to a request.
    Answer = 23,
}

impl FrameKind {
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Stdin,
            Self::Resize,
            Self::Signal,
            Self::Request,
            Self::Stdout,
            Self::Stderr,
            Self::Started,
            Self::Ended,
            Self::Progress,
            Self::Problem,
            Self::Removed,
            Self::Answer,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: FrameKind,
    pub length: u32,
}

impl FrameHead {
    pub const SIZE: usize = 5;
    /// Larger frames are refused: nobody makes them, and the reader must not be made to hold them.
    pub const MAX: u32 = 1 << 20;

    #[must_use]
    pub fn encode(self) -> [u8; Self::SIZE] {
        let [a, b, c, d] = self.length.to_le_bytes();
        [self.kind as u8, a, b, c, d]
    }

    pub fn decode(bytes: [u8; Self::SIZE]) -> Result<Self, BadFrame> {
        let [kind, a, b, c, d] = bytes;
        let length = u32::from_le_bytes([a, b, c, d]);
        let known = FrameKind::from_byte(kind).ok_or(BadFrame::Kind { kind })?;
        if length > Self::MAX { Err(BadFrame::Length { length }) } else { Ok(Self { kind: known, length }) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadFrame {
    #[error("frame of unknown kind {kind}")]
    Kind { kind: u8 },
    #[error("frame of {length} bytes, more than the {} allowed", FrameHead::MAX)]
    Length { length: u32 },
}

/// Work that takes long enough to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Progress {
    /// A workspace is copied, mostly for the first time.
    Capturing {
        files: u64,
        bytes: u64,
        /// How many files there will be, or about so many. Counted only for a first capture, and absent until that is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
}

/// A command's conversation opens with one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    pub create: crate::sandbox::CreateRequest,
    pub exec: ExecRequest,
    /// Keep the sandbox when the command has ended.
    #[serde(default)]
    pub keep: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_every_byte() {
        for bytes in [&b"plain"[..], b"\xff\xfe", b"", "ü\n".as_bytes()] {
            let text = Text(bytes.to_vec());
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text, "{json}");
        }
    }

    #[test]
    fn a_frame_head_reads_back_and_a_giant_is_refused() {
        let head = FrameHead { kind: FrameKind::Stderr, length: 77 };
        assert_eq!(FrameHead::decode(head.encode()).unwrap(), head);
        let giant = FrameHead { kind: FrameKind::Stderr, length: FrameHead::MAX + 1 };
        assert!(FrameHead::decode(giant.encode()).is_err());
        assert!(FrameHead::decode([99, 0, 0, 0, 0]).is_err());
    }
}
