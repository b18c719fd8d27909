//! Where the command line touches what lies below the API: being the daemon or its launcher, and asking about this
//! machine when no daemon can be started.

use std::path::Path;

use model::doctor::Report;
use server::daemon::DaemonOptions;

use crate::failure::Failure;

/// Becomes the launcher, if this process was started as one.
pub(crate) fn run_launcher() -> Option<Result<(), Failure>> {
    server::daemon::launcher_if_asked().map(|done| done.map_err(Failure::Launcher))
}

/// Becomes the daemon; returns when it was told to stop. Called before any runtime or thread exists.
pub(crate) fn run_daemon(options: &DaemonOptions) -> Result<(), Failure> {
    server::daemon::run(options).map_err(Failure::Daemon)
}

/// What this machine can do, found out without a daemon.
pub(crate) fn local_doctor(home: &Path) -> Report {
    server::daemon::doctor(home)
}
