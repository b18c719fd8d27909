//! A forked child that tries something and reports the errno.

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::sys;

/// Runs `attempt` in a child and returns what it returned.
///
/// `attempt` may only make system calls on memory that is already there: it runs after a fork, possibly of a
/// threaded process, where another thread may have held the allocator's lock.
pub(super) fn attempt(attempt: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    wait(fork(attempt)?)
}

pub(super) fn fork(attempt: impl FnOnce() -> Result<(), Errno>) -> Result<Pid, Errno> {
    match sys::fork()? {
        Some(pid) => Ok(pid),
        None => {
            let errno = attempt().err().map_or(0, Errno::raw_os_error);
            sys::exit_now(errno)
        }
    }
}

/// Waits for the child's end and returns what it returned.
pub(super) fn wait(pid: Pid) -> Result<(), Errno> {
    match reap(pid)?.exit_status() {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(code)),
        // Killed by a signal: by a filter, or for want of memory.
        None => Err(Errno::PERM),
    }
}

pub(super) fn reap(pid: Pid) -> Result<WaitStatus, Errno> {
    let waited = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()))?;
    waited.map(|(_, status)| status).ok_or(Errno::CHILD)
}
