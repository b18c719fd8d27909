//! Where the command line touches what lies below the API: being the daemon, and asking about this machine
//! when no daemon can be started.

use model::doctor::Report;
use server::daemon::DaemonOptions;

use crate::failure::Failure;

/// Becomes the daemon; returns when it was told to stop. Called before any runtime or thread exists, because
/// the launcher has to be forked from a process with one thread.
pub(crate) fn run_daemon(options: &DaemonOptions) -> Result<(), Failure> {
    server::daemon::main(options).map_err(Failure::Daemon)
}

/// What this machine can do, found out without a daemon; `None` where that cannot be told from here.
pub(crate) fn local_doctor() -> Option<Report> {
    None
}
