//! Limits by cgroup, version 1 and 2.
//!
//! Every cgroup of ours lies in a directory `zeno-<key>` named after the daemon's home, so several daemons on
//! one machine do not meet. That directory carries the caps of all sandboxes together; in it lie `shared`,
//! for sandboxes without limits of their own, and one directory per sandbox that has some:
//!
//! ```text
//! <base>/zeno-<key>/        caps for everything below
//!                   shared/ the launcher, and what it starts
//!                   <id>/   one sandbox with limits of its own
//! ```
//!
//! Never creates a cgroup where this user was not given the right to, never moves a process that is not
//! a sandbox's own, and never says a limit holds that was not written.
//!
//! Version 1 is tested on a real kernel. A version 2 hierarchy with controllers cannot be had on
//! the machines that build this: there the choice of directory and the values written are tested on a plain
//! directory tree.

mod base;
mod group;
mod hierarchy;
mod layout;
mod remedy;
mod shared;
mod sweep;
#[cfg(test)]
mod tests;
mod v1;
mod v2;

use std::io;
use std::path::PathBuf;

pub use group::Cgroup;
pub use layout::{Controller, Layout, Place, Standing, Unenforceable, Version};
pub use shared::Shared;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to make the cgroup {}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("failed to write `{text}` to {}", path.display())]
    Set { path: PathBuf, text: String, source: io::Error },
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no number where one is expected", path.display())]
    Garbled { path: PathBuf },
    #[error("failed to remove the cgroup {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("this machine does not let zeno use the {} cgroup controller", missing.controller)]
    Unusable { missing: Unenforceable },
}
