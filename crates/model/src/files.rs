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

/// What is done with a file or folder inside a sandbox. Paths are absolute, as the sandbox sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FileOp {
    /// Answered with the bytes.
    Read { path: Text },
    /// Makes or replaces a file. Answered with its [`FileStat`].
    Write {
        path: Text,
        /// Permission bits; of a file that exists they are kept if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// Answered with a [`Listing`].
    List { path: Text },
    /// Answered with the [`FileStat`], of a symbolic link itself.
    Stat { path: Text },
    Remove {
        path: Text,
        /// A folder with all that is in it.
        #[serde(default)]
        recursive: bool,
    },
    /// Makes a folder, and those above it. Answered with its [`FileStat`].
    MakeDir {
        path: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
}
