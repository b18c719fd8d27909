//! Sandboxes on this machine, by zeno's own engine.
//!
//! The methods have the names of the backend contract (provision, exec, teardown, ...), which becomes a trait when a
//! second backend exists.

use std::path::PathBuf;

use model::exec::{Context, Exec, ExecRequest, Progress};
use model::files::FileOp;
use model::sandbox::{CreateRequest, Freshness, Masked};
use model::units::Size;
use model::{Caveat, ExecId, Problem, SandboxId};
use tokio::net::UnixStream;

/// A sandbox that runs now. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Running {
    pub id: SandboxId,
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
    /// Start this at once, saving a round trip.
    pub first: Option<&'a ExecRequest>,
}

#[derive(Debug)]
pub struct Native;

#[expect(
    unused_variables,
    clippy::unused_async,
    clippy::todo,
    reason = "signatures first; bodies follow in this issue"
)]
impl Native {
    /// Makes a sandbox and waits until it answers. On error nothing is left behind.
    pub async fn provision(
        &self,
        order: Provision<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Provisioned, Problem> {
        todo!()
    }
    /// Makes the processes of a stopped sandbox again, on its kept layers.
    pub async fn start(&self, order: Provision<'_>) -> Result<Provisioned, Problem> {
        todo!()
    }
    /// Finds a running sandbox again after a restart of the daemon. `None`: its init is gone.
    pub async fn adopt(&self, id: SandboxId) -> Option<Running> {
        todo!()
    }
    /// Resolves when the sandbox's init is gone.
    pub async fn ended(&self, running: &Running) -> End {
        todo!()
    }
    /// Starts a command. The stream speaks the frames of `model::exec`: `Started`, then output, then `Ended`.
    pub async fn exec(
        &self,
        running: &Running,
        context: &Context,
        request: &ExecRequest,
    ) -> Result<UnixStream, Problem> {
        todo!()
    }
    /// Joins a running command: replays nothing, streams what comes; an ended one answers `Ended` at once.
    pub async fn attach(&self, running: &Running, exec: ExecId) -> Result<UnixStream, Problem> {
        todo!()
    }
    pub async fn execs(&self, running: &Running) -> Result<Vec<Exec>, Problem> {
        todo!()
    }
    pub async fn signal(&self, running: &Running, exec: ExecId, signal: i32) -> Result<(), Problem> {
        todo!()
    }
    /// Does something with a file inside. `Read` streams `Stdout` frames, then `Ended`; `Write` takes `Stdin` frames
    /// (an empty one ends it); everything but `Read` is answered with one `Answer`. A failure is a `Problem` frame.
    pub async fn file(
        &self,
        running: &Running,
        user: Option<&str>,
        op: &FileOp,
    ) -> Result<UnixStream, Problem> {
        todo!()
    }
    /// Freezes every process. Memory and descriptors stay.
    pub async fn pause(&self, running: &Running) -> Result<(), Problem> {
        todo!()
    }
    pub async fn resume(&self, running: &Running) -> Result<(), Problem> {
        todo!()
    }
    /// Sets init's deadline anew.
    pub async fn set_deadline(&self, running: &Running, deadline: Option<u64>) -> Result<(), Problem> {
        todo!()
    }
    /// Ends every process; keeps the layers.
    pub async fn stop(&self, running: &Running) -> Result<(), Problem> {
        todo!()
    }
    /// Ends every process and removes everything. Also for a half-made, stopped or dead sandbox; done twice is done.
    pub async fn teardown(&self, id: SandboxId) -> Result<(), Problem> {
        todo!()
    }
    /// Every sandbox that has anything on this machine.
    pub async fn inventory(&self) -> Result<Vec<SandboxId>, Problem> {
        todo!()
    }
    pub async fn freshness(&self, id: SandboxId) -> Result<Option<Freshness>, Problem> {
        todo!()
    }
    pub async fn masked(&self, id: SandboxId) -> Result<Vec<Masked>, Problem> {
        todo!()
    }
    /// Processes inside, init not counted.
    pub async fn processes(&self, running: &Running) -> Result<u64, Problem> {
        todo!()
    }
    pub async fn written(&self, id: SandboxId) -> Result<Size, Problem> {
        todo!()
    }
    /// The file that holds the output of its commands, if it has any yet: records for `engine::init::log`.
    pub fn log_path(&self, id: SandboxId) -> PathBuf {
        todo!()
    }
    /// The boot clock so many nanoseconds from now.
    pub fn deadline_after(&self, span: std::time::Duration) -> u64 {
        todo!()
    }
}
