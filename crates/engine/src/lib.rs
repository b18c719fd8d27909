//! zeno on Linux: the frozen copy of a workspace, the view of the machine, the namespaces, the first process.
//!
//! Synchronous. The only crate with `unsafe`. Never prints, never knows HTTP, SQLite or tokio, and never
//! resolves a path inside a sandbox except beneath its root.
#![expect(unsafe_code, reason = "this crate talks to the kernel; raw calls live in `sys`")]

pub mod capture;
pub mod cgroup;
pub mod diff;
pub mod errand;
mod executable;
pub mod gateway;
mod homes;
pub mod image;
pub mod init;
pub mod launcher;
pub mod layers;
pub mod machine;
pub mod promote;
pub mod remove;
pub mod seccomp;
mod sys;
mod tree;
pub mod view;

pub use executable::run_sealed;
pub use homes::homes;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// The path of `name` in an open folder, whatever the folder's own path is or becomes. Short enough for a socket.
#[must_use]
pub fn through(folder: BorrowedFd<'_>, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// The boot clock in nanoseconds: it goes on while the machine sleeps.
#[must_use]
pub fn boot_clock() -> u64 {
    init::boot_clock()
}
