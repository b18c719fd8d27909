//! Files inside a sandbox, as the API shows them.

use std::collections::BTreeMap;

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
    /// The contents arrive as `stdout` frames; an `answer` frame ends them.
    Read { path: Text },
    /// Makes or replaces a file: the contents follow as `stdin` frames, the last one empty. Answered with its [`FileStat`].
    Write {
        path: Text,
        /// Permission bits; of a file that exists they are kept if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// Answered with one or more [`Listing`]s; the end of the stream ends them.
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
    // From here on: known to init since version 6 of its protocol. These paths may be relative to the user's home, or begin with
    // `~`. Init does these with all rights there are in the sandbox, and gives what it makes to the user.
    /// Answered with [`Contents`], then as [`FileOp::Read`].
    Download {
        path: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Part>,
    },
    /// Makes or replaces a file, and folders above it. Answered with null when it can be written; then as [`FileOp::Write`], but
    /// answered with its [`Entry`].
    Upload {
        path: Text,
        /// In place of what was noted of it before.
        metadata: BTreeMap<String, String>,
    },
    /// Answered with the [`Entry`], of a symbolic link itself.
    Entry { path: Text },
    /// What is in a folder, and in the folders in it, so many levels deep: each before what is in it. Answered with
    /// [`Entries`], and null after the last of them.
    Entries { path: Text, depth: u32 },
    /// Makes a folder that was not there, and those above it. Answered with its [`Entry`].
    NewDir { path: Text },
    /// Renames, onto another file system too, and makes the folders above. Answered with the new [`Entry`].
    Move { from: Text, to: Text },
    /// Removes a file, or a folder with all in it. What is not there is removed already.
    Clear { path: Text },
    /// Answered with null when changes in a folder are seen, and then with lists of [`Change`] until the other side leaves.
    Watch {
        path: Text,
        /// In the folders in it, too.
        recursive: bool,
        /// With the [`Entry`] of what changed.
        entries: bool,
    },
}

impl FileOp {
    /// The version of init's protocol that first had it.
    #[must_use]
    pub fn since(&self) -> u32 {
        match self {
            Self::Read { .. }
            | Self::Write { .. }
            | Self::List { .. }
            | Self::Stat { .. }
            | Self::Remove { .. }
            | Self::MakeDir { .. } => 1,
            Self::Download { .. }
            | Self::Upload { .. }
            | Self::Entry { .. }
            | Self::Entries { .. }
            | Self::NewDir { .. }
            | Self::Move { .. }
            | Self::Clear { .. }
            | Self::Watch { .. } => AT_HOME,
        }
    }

    /// Is its path relative to the user's home, and what it makes the user's?
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        self.since() >= AT_HOME
    }
}

/// The version of init's protocol that first had operations at the user's home.
const AT_HOME: u32 = 6;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    From {
        first: u64,
        /// To the end if absent.
        last: Option<u64>,
    },
    /// So many bytes before the end.
    Last { length: u64 },
}

/// What comes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Absent where nobody knows before the end, as in `/proc`: then all comes that there is.
    pub size: Option<u64>,
    /// Where it begins; the size if no byte of the part that was asked for is in the file.
    pub first: u64,
    pub length: u64,
}

/// A file or folder in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Absolute.
    pub path: Text,
    pub stat: FileStat,
    /// By name, as the sandbox knows them; the number of one that has none.
    pub owner: Text,
    pub group: Text,
    /// Where a symbolic link leads in the end, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<Destination>,
    /// What was noted of it: its extended attributes `user.e2b.*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    pub path: Text,
    pub kind: FileKind,
    pub mode: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    pub entries: Vec<Entry>,
}

/// Something happened in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Relative to the folder; `.` is the folder itself.
    pub name: Text,
    pub kind: ChangeKind,
    /// If it was asked for and something is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Made, or moved here.
    Create,
    Write,
    Remove,
    /// Moved away.
    Rename,
    Chmod,
}
