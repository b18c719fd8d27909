//! What daemon and launcher say to each other: one packet each way per sandbox, JSON with descriptors beside it.

use std::borrow::Cow;
use std::path::PathBuf;

use model::Caveat;
use serde::{Deserialize, Serialize};

use super::rights::Rights;
use crate::view::Plan;

/// Packets are no larger. A plan is a few kilobytes; where there are many homes, or a folder full of mounts, it is more.
pub(crate) const PACKET: usize = 64 << 20;

/// The first packet: what the launcher is for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    pub(super) home: PathBuf,
    pub(super) rights: Rights,
    /// `cgroup.procs` files to join, so that all sandboxes inherit the shared caps.
    pub(super) join: Vec<PathBuf>,
}

/// A sandbox to make. Beside it two descriptors: the first conversation and the log file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Launch<'a> {
    pub(super) plan: Cow<'a, Plan>,
    /// The sandbox's folder, relative to the home.
    pub(super) folder: PathBuf,
    /// The folder in it that takes what it writes, where it has no disk of its own.
    pub(super) upper: String,
    /// `cgroup.procs` files its processes go to.
    pub(super) join: Vec<PathBuf>,
    /// The block device with the file system for what it writes, where it has one.
    pub(super) disk: Option<PathBuf>,
    /// Files of the store that are put over files of the view.
    pub(super) given: Vec<Given>,
}

/// A file that a sandbox is given. It lies over the machine's own and is nothing that the sandbox wrote: no diff shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Relative to the home.
    pub file: PathBuf,
    /// Absolute, and no link.
    pub at: PathBuf,
}

/// The answer to either. After [`Answer::Launched`] one descriptor: the pidfd of init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Ready,
    Launched(Answered),
    Failed(LaunchError),
}

/// A sandbox that was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) pid: i32,
    pub(super) caveats: Vec<Caveat>,
    /// A mount that the plan names was gone.
    pub(super) is_outdated: bool,
}

/// What the launcher could not do. It crosses a process boundary, so the kernel's answer travels as a number.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("could not {action}: {}", std::io::Error::from_raw_os_error(*errno))]
pub struct LaunchError {
    pub action: String,
    pub errno: i32,
    /// What the kernel wrote beside it.
    pub kernel: Option<String>,
}

impl LaunchError {
    pub(crate) fn new(action: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        let error = error.into();
        Self { action: action.into(), errno: error.raw_os_error().unwrap_or(0), kernel: None }
    }

    /// The plan is of a machine that has changed since.
    pub(crate) fn outdated(action: impl Into<String>) -> Self {
        Self { action: action.into(), errno: libc::ESTALE, kernel: None }
    }

    #[must_use]
    pub(super) fn is_outdated(&self) -> bool {
        self.errno == libc::ESTALE
    }
}
