//! Sandboxes on this machine, by zeno's own engine.
//!
//! The methods have the names of the backend contract (provision, exec, teardown, ...), which becomes a trait when a
//! second backend exists.

mod authority;
mod boot;
mod command;
mod diff;
mod disk;
mod garbage;
mod gateway;
mod host;
mod hosts;
mod java;
mod life;
mod limits;
mod port;
mod problem;
mod promote;
mod provision;
mod rebase;
mod snapshot;
mod squash;
mod state;
mod stock;
mod store;
mod talk;
mod usage;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::capture::Captures;
use engine::cgroup::Cgroup;
use engine::launcher::{Launcher, Rights};
use engine::layers::Layers;
use engine::machine::Machine;
use engine::view::Planner;
use model::exec::ExecRequest;
use model::mask::Masks;
use model::sandbox::CreateRequest;
use model::units::Size;
use model::{Caveat, LayerId, SandboxId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

pub use authority::{Authority, trust_variables};
pub use diff::Other;
pub use engine::promote::{Purpose, Summary};
pub use gateway::Outlet;
pub use host::doctor;
pub use problem::NativeError;
pub use promote::{Candidate, Passage};
pub use rebase::{Rebase, Rebased};
pub use snapshot::Saved;
pub use squash::{Change, DEEPEST};
pub use state::SealedState;
pub use usage::Room;

/// The backend. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Native(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: PathBuf,
    boot: boot::Boot,
    machine: Machine,
    launcher: Launcher,
    planner: Planner,
    captures: Captures,
    layers: Layers,
    layer_sizes: Mutex<HashMap<LayerId, Size>>,
    squashed: squash::Squashed,
    /// What the caps shared by all sandboxes do not cover here.
    shared_caveats: Vec<Caveat>,
    stock: stock::Stock,
    hosts: hosts::Hosts,
    /// Held by whoever changes reality.
    promoting: Mutex<()>,
    /// Those we hold, so that ending one needs no search.
    held: Mutex<HashMap<SandboxId, Running>>,
}

/// A sandbox that runs now. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Running {
    pub id: SandboxId,
    /// Readable when init has ended.
    process: Arc<AsyncFd<OwnedFd>>,
    /// Of the protocol that its init speaks.
    version: u32,
}

/// What provisioning found out, for the record.
#[derive(Debug)]
pub struct Provisioned {
    pub running: Running,
    /// The frozen folder.
    pub workspace: Option<PathBuf>,
    pub caveats: Vec<Caveat>,
    /// The conversation of the first command, if one was given.
    pub first: Option<UnixStream>,
}

/// How a sandbox's last process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its own clock (ttl or idle) ran out.
    Expired,
    /// It was killed from outside, or crashed.
    Died { reason: String },
}

/// What is to be provisioned.
#[derive(Debug)]
pub struct Provision<'a> {
    pub id: SandboxId,
    pub request: &'a CreateRequest,
    /// When its time is over, on the boot clock, in nanoseconds (`Native::deadline_after`). Init holds it.
    pub deadline: Option<u64>,
    /// Everything inside ends with the first command.
    pub throwaway: bool,
    /// Start this at once, saving a round trip.
    pub first: Option<&'a ExecRequest>,
}

impl Native {
    /// `$ZENO_HOME`.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.0.home
    }

    /// Opens the backend for one `$ZENO_HOME`, which exists and is ours. Starts the launcher.
    pub fn open(home: &Path) -> Result<Self, NativeError> {
        let rights = Rights::of_this_process();
        for folder in ["sandboxes", "captures", "stage", "stock", "promotions"] {
            let path = home.join(folder);
            std::fs::create_dir_all(&path).map_err(|source| NativeError::MakeFolder { path, source })?;
        }
        let home = std::fs::canonicalize(home)
            .map_err(|source| NativeError::MakeFolder { path: home.to_owned(), source })?;
        let machine = engine::machine::probe(&home);
        let live = host::way_of_showing(rights, machine.data_only_stubs);
        let masks = Masks::built_in();
        let captures = Captures::open(&home.join("captures"), live, masks.workspace.clone())?;
        let layers = Layers::open(&home)?;
        if let Err(error) = engine::remove::tree(&promote::scratch(&home)) {
            // A git that outlived the last daemon may still be at work there. Whoever needs it next tries again.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the scratch of a promotion stays behind"
            );
        }
        let boot = boot::Boot::of_this_machine()?;
        recover(&home, &captures, &layers, &machine, &boot)?;
        let squashed = squash::Squashed::read(&layers)?;
        stock::sweep(&home)?;
        let shared = machine.cgroup.shared()?;
        let join = shared.cgroup.iter().flat_map(Cgroup::process_files).collect();
        let launcher = Launcher::start(&home, rights, join)
            .map_err(|error| host::not_started(error, &machine, &home))?;
        let planner = Planner::new(home.clone(), rights, masks);
        Ok(Self(Arc::new(Inner {
            home,
            boot,
            machine,
            launcher,
            planner,
            captures,
            layers,
            layer_sizes: Mutex::default(),
            squashed,
            shared_caveats: shared.caveats,
            stock: stock::Stock::default(),
            hosts: hosts::Hosts::default(),
            promoting: Mutex::default(),
            held: Mutex::default(),
        })))
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SandboxId, Running>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what the backend itself runs and made; sandboxes live on. Nothing is to be asked of it afterwards.
    pub async fn close(&self) {
        let native = self.clone();
        let closed = tokio::task::spawn_blocking(move || {
            native.0.close_stock();
            native.0.launcher.end();
            // The launcher's spare may still be ending, and so may sandboxes that were destroyed just now. Those that live
            // on are not waited for.
            let lives_on = native.held().values().any(Running::is_alive);
            native.0.machine.cgroup.forget(if lives_on { Duration::ZERO } else { LAST_ENDS });
        });
        if let Err(error) = closed.await {
            tracing::warn!(%error, "the native backend could not be closed");
        }
    }

    /// The boot clock so long from now.
    #[must_use]
    pub fn deadline_after(&self, span: Duration) -> u64 {
        engine::boot_clock().saturating_add(span.as_nanos() as u64)
    }
}

impl Inner {
    fn layer_sizes(&self) -> MutexGuard<'_, HashMap<LayerId, Size>> {
        self.layer_sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Returns when its init has ended, and with it everyone inside.
    pub async fn gone(&self) -> std::io::Result<()> {
        self.process.readable().await.map(drop)
    }

    fn is_alive(&self) -> bool {
        let mut process = [PollFd::new(self.process.get_ref(), PollFlags::IN)];
        poll(&mut process, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
    }
}

/// Pins the captures of every sandbox that has a folder, running or not, and finishes what was begun with its layers. A
/// sandbox that turns out to be dead releases its pins when it is torn down.
fn recover(
    home: &Path,
    captures: &Captures,
    layers: &Layers,
    machine: &Machine,
    boot: &boot::Boot,
) -> Result<(), NativeError> {
    let found = store::inventory(home)?;
    for id in &found {
        // Half-made ones have no plan yet; they are torn down.
        let folder = store::Folder::of(home, *id);
        let Ok(mut stored) = folder.settle(layers) else { continue };
        if stored.outlived(boot)
            && let Err(error) = folder.replace(&stored)
        {
            // The next daemon finds it as we did.
            tracing::warn!(%id, error = &error as &dyn std::error::Error, "what it may have lost is not written down");
        }
        if let Some(frozen) = stored.frozen
            && let Err(error) = captures.adopt(*id, &frozen)
        {
            tracing::warn!(%id, error = &error as &dyn std::error::Error, "a sandbox's frozen workspace is gone");
        }
    }
    for error in machine.cgroup.sweep(&found) {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a cgroup of a sandbox that is gone stays behind"
        );
    }
    Ok(())
}

/// What the daemon's end waits for processes that are ending.
const LAST_ENDS: Duration = Duration::from_secs(5);
