//! The handle that everything above this crate holds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backends::native::{Native, Running};
use model::limits::Limits;
use model::net::Wiring;
use model::{Problem, Sandbox, SandboxId};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::names::Noun;
use crate::refusal;
use crate::slots::{Seat, Slot, Slots};
use crate::store::{self, Move, Moved, Record, Store};

/// Every sandbox of one home. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) native: Native,
    pub(crate) slots: Slots,
    /// Whoever makes or uses layers holds this, so that nobody collects what is not recorded yet. Asked for only after the
    /// turn of a sandbox, never before it: who collects holds it alone.
    pub(crate) layers: tokio::sync::RwLock<()>,
    /// Whoever takes a promotion back or forgets it holds this, so that nobody does the other meanwhile.
    pub(crate) undoing: tokio::sync::Mutex<()>,
    /// Whoever changes something holds a permit; shutting down takes them all.
    gate: Arc<Semaphore>,
    closing: watch::Sender<bool>,
    /// Tells of every sandbox whose processes are there, anew or again.
    pub(crate) seated: broadcast::Sender<SandboxId>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to open the store in `{}`", home.display())]
    Open {
        home: std::path::PathBuf,
        #[source]
        source: store::Error,
    },
    #[error("failed to read which sandboxes there should be")]
    Records {
        #[source]
        source: store::Error,
    },
    #[error("failed to read which snapshots there are")]
    Snapshots {
        #[source]
        source: store::Error,
    },
    #[error("failed to tidy the frozen workspaces")]
    Settle {
        #[source]
        source: Problem,
    },
    #[error("failed to find out which sandboxes there are")]
    Inventory {
        #[source]
        source: Problem,
    },
}

impl Control {
    /// Opens the store, brings it and the machine together, and starts looking after both.
    pub async fn open(home: &Path, native: Native) -> Result<Self, Error> {
        let store = Store::open(home).map_err(|source| Error::Open { home: home.to_owned(), source })?;
        let gate = Arc::new(Semaphore::new(AT_ONCE as usize));
        let (slots, layers, undoing) = Default::default();
        let closing = watch::Sender::new(false);
        let seated = broadcast::Sender::new(SEATED_BUFFERED);
        let inner = Inner { store, native, slots, layers, undoing, gate, closing, seated };
        let control = Self { inner: Arc::new(inner) };
        control.hold_snapshots().await?;
        control.reconcile().await?;
        control.recover_promotions().await;
        tokio::spawn(control.clone().look_after());
        Ok(control)
    }

    /// Lets what is under way finish, then closes the store. Sandboxes go on.
    pub async fn shutdown(&self) {
        self.inner.closing.send_replace(true);
        let all = tokio::time::timeout(LAST_WORK, self.inner.gate.acquire_many(AT_ONCE)).await;
        if all.is_err() {
            tracing::warn!("shutting down although requests are still under way");
        }
        self.inner.gate.close();
        self.inner.native.close().await;
        self.inner.store.close().await;
    }

    /// Runs a change to its end even if whoever asked goes away, so that no sandbox is left half-way.
    pub(crate) async fn to_the_end<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let gate = Arc::clone(&self.inner.gate);
        let permit = gate.acquire_owned().await.map_err(|_closed| refusal::closing())?;
        let task = tokio::spawn(async move {
            let answer = work.await;
            drop(permit);
            answer
        });
        task.await.unwrap_or_else(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "a request panicked");
            Err(refusal::lost())
        })
    }

    /// Resolves when the daemon shuts down.
    pub(crate) async fn closing(&self) {
        let mut closing = self.inner.closing.subscribe();
        if closing.wait_for(|closing| *closing).await.is_err() {
            tracing::debug!("the last handle is gone");
        }
    }

    /// Finds a sandbox that exists. One that is gone is told from one that never was.
    pub(crate) async fn find(&self, which: &str, verb: &str) -> Result<Arc<Slot>, Problem> {
        match self.inner.slots.find(which) {
            Ok(slot) => Ok(slot),
            Err(problem) => match self.destroyed(which).await? {
                Some(sandbox) => Err(refusal::not_ready(&sandbox, verb)),
                None => Err(problem),
            },
        }
    }

    /// The record of a destroyed sandbox, by its whole id.
    pub(crate) async fn destroyed(&self, which: &str) -> Result<Option<Sandbox>, Problem> {
        let Ok(id) = Noun::Sandbox.bare(which).parse() else { return Ok(None) };
        let record = self.inner.store.record(id).await.map_err(|error| refusal::store(&error))?;
        Ok(record.map(|record| record.sandbox))
    }

    pub(crate) async fn record(&self, slot: &Slot) -> Result<Record, Problem> {
        let record = self.inner.store.record(slot.id).await.map_err(|error| refusal::store(&error))?;
        record.ok_or_else(|| refusal::not_found(Noun::Sandbox, &slot.label(), &[]))
    }

    /// The folder of all there is.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.inner.native.home()
    }

    pub(crate) async fn transition(&self, slot: &Slot, change: Move) -> Result<Moved, Problem> {
        self.inner.store.transition(slot.id, change).await.map_err(|error| refusal::store(&error))
    }

    /// The record and the processes of a sandbox that commands can be given to.
    pub(crate) async fn running(&self, slot: &Slot, verb: &str) -> Result<(Record, Arc<Seat>), Problem> {
        let record = self.record(slot).await?;
        if !record.sandbox.state.is_running() {
            return Err(refusal::not_ready(&record.sandbox, verb));
        }
        let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
        Ok((record, seat))
    }

    /// Takes note of a sandbox's processes, and waits in the background for their end.
    pub(crate) fn seat(&self, slot: &Arc<Slot>, processes: Processes<'_>) -> Arc<Seat> {
        let seat = Seat::new(processes.running, processes.context, processes.limits, processes.deadline);
        let seat = slot.sit(seat);
        self.watch(Arc::clone(slot), Arc::clone(&seat));
        if processes.wiring == Wiring::Gateway && self.inner.seated.send(slot.id).is_err() {
            tracing::trace!("nobody waits for sandboxes");
        }
        seat
    }

    /// A permit for what zeno does by itself. None: the daemon shuts down.
    pub(crate) async fn permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.inner.gate.acquire().await.ok()
    }
}

/// What is known of processes that run.
pub(crate) struct Processes<'a> {
    pub(crate) running: Running,
    pub(crate) context: model::exec::Context,
    pub(crate) limits: &'a Limits,
    pub(crate) wiring: Wiring,
    pub(crate) deadline: u64,
}

/// Changes under way at once; more wait.
const AT_ONCE: u32 = 4096;
/// How far whoever waits for sandboxes may fall behind before it has to look at all of them.
const SEATED_BUFFERED: usize = 4096;
/// How long shutting down waits for them.
const LAST_WORK: Duration = Duration::from_secs(10);
