//! The daemon's main: one instance per home, listeners, signals, an orderly end. Sandboxes do not end with it.

mod ensure;
mod home;
mod listening;
mod log;
pub(crate) mod serve;
mod wiring;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::Control;
use lanes::Lanes;
use model::doctor::Report;
use rustix::io::Errno;
use tokio::signal::unix::{SignalKind, signal};
use xray::Gateway;

pub use ensure::{ensure, stop};
pub use home::HomeError;
pub use listening::{ListenError, Listening};
pub use wiring::{ErrandError, LaunchError, doctor, errand_if_asked, launcher_if_asked, run};

use crate::api::{App, Door, Stop, router};
use crate::best_effort;

#[derive(Clone, Debug)]
pub struct DaemonOptions {
    pub home: PathBuf,
    /// Listen on TCP as well; loopback only, with the token in the home.
    pub listen: Option<SocketAddr>,
    /// Asked for names by the gateway, instead of this machine's own name servers.
    pub resolver: Option<SocketAddr>,
    /// Certificate authorities that the gateway trusts beside this machine's own.
    pub trust: Option<PathBuf>,
    /// Who comes in over MCP and HTTP may promote, although nobody can be asked there.
    pub allow_promote: bool,
    /// Filter of the log, for example `debug` or `control=trace`; `info` if absent.
    pub log: Option<String>,
}

/// What the daemon serves.
#[derive(Debug)]
pub struct Served {
    pub control: Control,
    pub lanes: Lanes,
    pub gateway: Gateway,
    pub doctor: Report,
}

/// What the caller's own steps may fail with.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the daemon until it is told to end.
///
/// `prepare` runs while the process has one thread and holds neither the lock nor a socket: a process forked
/// there cannot keep the home locked after the daemon is gone. `build` then makes what is served, inside the
/// runtime.
pub fn main<P, B, F, L>(options: &DaemonOptions, prepare: P, build: B) -> Result<(), DaemonError>
where
    P: FnOnce(&Path) -> Result<L, AnyError>,
    B: FnOnce(L, PathBuf) -> F,
    F: Future<Output = Result<Served, AnyError>>,
{
    if let Some(address) = options.listen.filter(|address| !address.ip().is_loopback()) {
        return Err(ListenError::NotLoopback { address }.into());
    }
    detach()?;
    // What `ps` and `top` show; otherwise it would be the number of the descriptor it was started from.
    best_effort("name the process", rustix::thread::set_name(c"zeno-daemon"));
    home::create(&options.home)?;
    let prepared = prepare(&options.home).map_err(DaemonError::Prepare)?;
    let lock = home::Lock::take(&options.home)?;
    log::start(&options.home, options.log.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(DaemonError::Runtime)?;
    let outcome = runtime.block_on(serve_all(options, &lock, build(prepared, options.home.clone())));
    if let Err(error) = &outcome {
        tracing::error!(error = error as &dyn std::error::Error, "the daemon failed");
    }
    // What still blocks a thread must not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// A daemon that nobody watches leaves the session it was started in, so that closing that terminal does not
/// end it. Started at a terminal it stays, and Ctrl-C works.
fn detach() -> Result<(), DaemonError> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    match rustix::process::setsid() {
        Ok(_) => Ok(()),
        // It leads a group, so it was given one of its own by whoever supervises it.
        Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(DaemonError::Detach(errno.into())),
    }
}

async fn serve_all<F>(options: &DaemonOptions, lock: &home::Lock, build: F) -> Result<(), DaemonError>
where
    F: Future<Output = Result<Served, AnyError>>,
{
    let stop = Stop::new();
    stop_on_signals(&stop)?;
    outlive_file_limits()?;
    let Served { control, lanes, gateway, doctor } = build.await.map_err(DaemonError::Build)?;
    let (listening, arriving) = Listening::new(options.home.clone());
    let doctor = Arc::new(doctor);
    let app = App {
        control: control.clone(),
        lanes,
        gateway,
        doctor,
        stop: stop.clone(),
        listening: listening.clone(),
        allow_promote: options.allow_promote,
    };
    if let Some(address) = options.listen {
        listening.listen(&app, address).await?;
    }
    // Last, because a client that finds the socket expects an answer.
    let socket = home::Socket::bind(lock)?;
    let unix = (serve::Listener::Unix(socket.listener), router(app.clone(), Door::Unix));
    tracing::info!(version = crate::VERSION, pid = std::process::id(), "ready");

    // Each waits to be served before the next one is opened.
    tokio::join!(serve::until_stopped(unix, arriving, &stop), listening.listen_again(&app));
    socket.name.remove();
    control.shutdown().await;
    tracing::info!("ended");
    Ok(())
}

fn stop_on_signals(stop: &Stop) -> Result<(), DaemonError> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind).map_err(DaemonError::Signal)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                tracing::info!(signal = kind.as_raw_value(), "told to end");
                stop.request();
            }
        });
    }
    Ok(())
}

/// A write beyond the file size limit of whoever started us (`ulimit -f`) is an error of that write, not our end.
fn outlive_file_limits() -> Result<(), DaemonError> {
    // Once listened for, it never ends the process again, whether anybody still listens or not.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop).map_err(DaemonError::Signal)
}

/// The same number on every architecture zeno runs on.
const SIGXFSZ: i32 = 25;

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("could not make a sealed copy of zeno's own executable")]
    Seal(#[source] io::Error),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("failed to prepare the daemon")]
    Prepare(#[source] AnyError),
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    #[error("failed to wait for signals")]
    Signal(#[source] io::Error),
    #[error("failed to start the control plane")]
    Build(#[source] AnyError),
    #[error("failed to leave the caller's session")]
    Detach(#[source] io::Error),
}
