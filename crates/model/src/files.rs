//! Files inside a sandbox, as the API shows them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Text;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStat {
    /// The last part of the path.
    pub name: Text,
    pub kind: FileKind,
    pub size: u64,
    /// Permission bits, as in `chmod`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub modified: Timestamp,
    /// Where a symbolic link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// A folder's contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    pub entries: Vec<FileStat>,
}

/// What is asked of a sandbox's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum FileOp {
    /// The contents arrive as `stdout` frames; an `answer` frame ends them.
    Read {
        path: Text,
    },
    /// The contents follow as `stdin` frames, the last one empty; then an `answer` frame.
    Write {
        path: Text,
        mode: Option<u32>,
    },
    /// Each `answer` frame is a [`Listing`]; a large folder takes several, and the end of the stream ends them.
    List {
        path: Text,
    },
    /// The `answer` frame is a [`FileStat`].
    Stat {
        path: Text,
    },
    Remove {
        path: Text,
        recursive: bool,
    },
    MakeDir {
        path: Text,
        mode: Option<u32>,
    },
}
