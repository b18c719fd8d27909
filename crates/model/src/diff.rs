//! What a sandbox changed, compared with what it started from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Text;
use crate::files::FileKind;

/// Everything a sandbox changed. The lists have deletions first, and are ordered by path beyond that.
///
/// A path's times alone are no change, and neither is something that was changed and changed back. What zeno itself put
/// in or hid is never listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The frozen folder; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Text>,
    /// Changes in the frozen folder, with paths relative to it (`.` is the folder itself).
    pub workspace: Vec<Change>,
    /// Changes elsewhere on the machine, with absolute paths.
    pub machine: Vec<Change>,
    /// Absolute paths of git's own folders in which something changed. They are never listed file by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<Text>,
    /// Absolute paths that zeno was not allowed to read: what is there, or what is in it, may have changed too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Text>,
}

impl Diff {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { root: _, workspace, machine, git, unread } = self;
        workspace.is_empty() && machine.is_empty() && git.is_empty() && unread.is_empty()
    }
}

/// One path that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub path: Text,
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// What was there; absent if it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    /// What is there now; absent if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Entry>,
    /// The bytes of a file, the target of a link or the kind of the entry differ, not only what is said about it. True for
    /// whatever was added or deleted.
    pub contents: bool,
    /// Not text: it has a zero byte near its beginning, before or after.
    #[serde(default, skip_serializing_if = "is_false")]
    pub binary: bool,
    /// Names of the extended attributes that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<Text>,
    /// Git would not take it into a commit by itself: an ignored file, or one in an ignored folder.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignored: bool,
    /// Lines of text, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// Where two are compared: which of them changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// Which of two that are compared, counted from where they parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    One,
    Other,
    Both,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ChangeKind {
    Deleted,
    Added,
    Modified,
    /// A file with the same contents as one that is gone, or a folder that was moved. A folder brings everything in it
    /// along; only what changed besides is listed, under its new path.
    Renamed {
        from: Text,
    },
    /// A file became a folder, a folder a link, and so on.
    TypeChanged,
}

/// What a path looks like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// Bytes; of a folder or a device 0.
    pub size: u64,
    /// Permission bits, as in `chmod`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Where a symbolic link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
}

/// What differs between two sandboxes, or a sandbox and a snapshot, told as what it takes to make the second of the
/// first. `one`, `other`, `different` and `same` sum it up for the workspace, file by file, without what git ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Between {
    /// Changed by the first alone.
    pub one: Vec<Text>,
    /// Changed by the second alone.
    pub other: Vec<Text>,
    /// Changed by both, to different things.
    pub different: Vec<Text>,
    /// How many files both changed to the same.
    pub same: u64,
    /// They started from different states of the workspace: only what one of them changed is compared.
    #[serde(default, skip_serializing_if = "is_false")]
    pub apart: bool,
    /// From the first to the second.
    #[serde(flatten)]
    pub diff: Diff,
}

/// How much is to be told of each file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    #[default]
    Paths,
    /// Also how many lines of text came and went.
    Lines,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    pub added: u64,
    pub removed: u64,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
