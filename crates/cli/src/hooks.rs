//! Where the command line touches what lies below the API: being the daemon or one of its helpers, and asking about this
//! machine when no daemon can be started.

use std::path::Path;

use model::doctor::Report;
use server::daemon::DaemonOptions;

use crate::failure::Failure;

/// Becomes the launcher, or goes on an errand, if this process was started for that.
pub(crate) fn run_helper() -> Option<Result<(), Failure>> {
    let launcher = server::daemon::launcher_if_asked().map(|done| done.map_err(Failure::Launcher));
    launcher.or_else(|| server::daemon::errand_if_asked().map(|done| done.map_err(Failure::Errand)))
}

/// Becomes the daemon; returns when it was told to stop. Called before any runtime or thread exists.
pub(crate) fn run_daemon(options: &DaemonOptions) -> Result<(), Failure> {
    server::daemon::run(options).map_err(Failure::Daemon)
}

/// What this machine can do, found out without a daemon.
pub(crate) fn local_doctor(home: &Path) -> Report {
    server::daemon::doctor(home)
}
