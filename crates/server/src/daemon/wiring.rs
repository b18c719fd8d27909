//! Putting the daemon together: the engine below, control above it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use backends::native::Native;
use control::Control;
pub use engine::errand::ErrandError;
pub use engine::launcher::LaunchError;
use lanes::Lanes;
use model::doctor::Report;
use xray::Gateway;

use super::{DaemonError, DaemonOptions, Served, main};

/// Runs the daemon with the native backend. Called before any thread exists.
pub fn run(options: &DaemonOptions) -> Result<(), DaemonError> {
    run_sealed().map_err(DaemonError::Seal)?;
    let prepare = |_home: &Path| Ok(());
    let (resolver, trust) = (options.resolver, options.trust.as_deref());
    let build = |(), home: PathBuf| async move {
        let native = Native::open(&home)?;
        let doctor = native.doctor();
        let control = Control::open(&home, native).await?;
        let lanes = Lanes::new(control.clone(), &home);
        lanes.settle().await;
        let gateway = Gateway::start(control.clone(), resolver, trust)?;
        Ok(Served { control, lanes, gateway, doctor })
    };
    main(options, prepare, build)
}

/// Becomes the launcher, if this process was started as one by the daemon.
pub fn launcher_if_asked() -> Option<Result<(), LaunchError>> {
    is_asked(engine::launcher::VERB).then(engine::launcher::main)
}

/// Goes on an errand, if this process was started for one by the daemon.
pub fn errand_if_asked() -> Option<Result<(), ErrandError>> {
    is_asked(engine::errand::VERB).then(engine::errand::main)
}

fn is_asked(verb: &str) -> bool {
    std::env::args_os().nth(1).is_some_and(|asked| asked == verb)
}

/// What this machine can do, found out without a daemon.
#[must_use]
pub fn doctor(home: &Path) -> Report {
    backends::native::doctor(home)
}

/// Goes on from a sealed copy of the executable: see [`engine::run_sealed`].
fn run_sealed() -> io::Result<()> {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let argv: Vec<_> = argv.iter().map(OsString::as_os_str).collect();
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
    engine::run_sealed(&argv, &env)
}
