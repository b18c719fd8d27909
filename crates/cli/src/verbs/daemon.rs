//! `zeno daemon`.

use model::problem::Exit;
use serde::Serialize;
use server::daemon::DaemonOptions;

use crate::api::{Api, Health, is_absent};
use crate::args::daemon::{Daemon, DaemonAction, DaemonRun};
use crate::failure::{DONE, Failure};
use crate::hooks;
use crate::invocation::Invocation;
use crate::progress::Waiting;

pub(crate) async fn daemon(typed: &Daemon, invocation: &Invocation) -> Result<u8, Failure> {
    match (&typed.action, typed.listen) {
        (None, Some(address)) => {
            let health = invocation.api().await?.listen(address).await?;
            running(Some(health), invocation)?;
            Ok(DONE)
        }
        (None, None) | (Some(DaemonAction::Status), _) => status(invocation).await,
        (Some(DaemonAction::Start), _) => {
            let health = invocation.api().await?.health().await?;
            running(Some(health), invocation)?;
            Ok(DONE)
        }
        (Some(DaemonAction::Stop), _) => stop(invocation).await,
        (Some(DaemonAction::Run(options)), _) => run(options, invocation),
    }
}

pub(crate) fn run(typed: &DaemonRun, invocation: &Invocation) -> Result<u8, Failure> {
    hooks::run_daemon(&DaemonOptions {
        home: invocation.home()?,
        listen: typed.listen,
        resolver: typed.resolver,
        trust: typed.trust.clone(),
        allow_promote: typed.allow_promote,
        log: invocation.environment.log.clone(),
    })?;
    Ok(DONE)
}

async fn status(invocation: &Invocation) -> Result<u8, Failure> {
    match Api::connect(&invocation.home()?).await {
        Ok(api) => {
            running(Some(api.health().await?), invocation)?;
            Ok(DONE)
        }
        Err(error) if is_absent(&error) => {
            running(None, invocation)?;
            Ok(Exit::NotReady as u8)
        }
        Err(error) => Err(error.into()),
    }
}

async fn stop(invocation: &Invocation) -> Result<u8, Failure> {
    let home = invocation.home()?;
    match Api::connect(&home).await {
        Ok(api) => Waiting::begin("stopping the daemon").watch(api.stop_daemon(&home)).await?,
        // What is asked for is already so.
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(error.into()),
    }
    running(None, invocation)?;
    Ok(DONE)
}

fn running(health: Option<Health>, invocation: &Invocation) -> Result<(), Failure> {
    let home = invocation.home()?.display().to_string();
    let shown = match &health {
        Some(health) => {
            let at = health.listen.iter().map(|address| format!("  http://{address}")).collect::<String>();
            format!("running  zeno {}  pid {}  {home}{at}\n", health.version, health.pid)
        }
        None => format!("not running  {home}\n"),
    };
    invocation.answer(&DaemonStatus { running: health.is_some(), home, health }, |_| shown)
}

/// The answer of `zeno daemon status --json`.
#[derive(Serialize)]
struct DaemonStatus {
    running: bool,
    home: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
}
