//! With whose rights sandboxes are made.

use serde::{Deserialize, Serialize};

/// Root clones the machine whole; an ordinary user folder by folder, as far as they can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rights {
    Root,
    User { uid: u32, gid: u32 },
}

/// Inside, root's sandboxes have the machine's user ids; outside, these are shifted into the half of the id space that
/// nobody uses, so that a process of a sandbox is nobody to the host.
const SHIFT: u32 = 1 << 31;
/// How many ids are mapped: all below the shift but the last, which stands for the mounter.
const COUNT: u32 = SHIFT - 1;

impl Rights {
    #[must_use]
    pub fn of_this_process() -> Self {
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            Self::Root
        } else {
            Self::User { uid: uid.as_raw(), gid: rustix::process::getegid().as_raw() }
        }
    }

    /// The text for a sandbox's `uid_map`.
    pub(super) fn uid_map(self) -> String {
        match self {
            Self::Root => format!("0 {SHIFT} {COUNT}\n"),
            Self::User { uid, .. } => format!("{uid} {uid} 1\n"),
        }
    }

    /// The text for a sandbox's `gid_map`.
    pub(super) fn gid_map(self) -> String {
        match self {
            Self::Root => format!("0 {SHIFT} {COUNT}\n"),
            Self::User { gid, .. } => format!("{gid} {gid} 1\n"),
        }
    }

    /// The map for layers, as root. It has one more line than the sandbox's: an overlay whose mounter (host root) has no
    /// id on the upper's mount turns read-only.
    pub(super) const fn layer_map() -> (u32, u32, u32) {
        (SHIFT, COUNT, COUNT)
    }

    /// How an id of the machine is written by the launcher itself on a file system without a mapping of its own.
    pub(super) fn shifted(self, id: u32) -> Option<u32> {
        match self {
            Self::Root => (id < COUNT).then(|| id + SHIFT),
            Self::User { .. } => None,
        }
    }
}
