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

/// What can be done with a file in a sandbox. Paths are resolved inside it, as the command's user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum FileOp {
    Read { path: Text },
    Write { path: Text, mode: Option<u32> },
    List { path: Text },
    Stat { path: Text },
    Remove { path: Text, recursive: bool },
    MakeDir { path: Text, mode: Option<u32> },
}
