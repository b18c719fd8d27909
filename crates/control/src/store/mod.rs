//! The record of every sandbox and everything that happened to it, in SQLite.
//!
//! One thread owns the connection ([`ledger`]); callers send it work and wait. What waits at the same time is
//! written in one transaction. Never talks to a backend and never decides what should happen.

mod error;
mod ledger;
mod moves;
mod promotions;
mod races;
mod requests;
mod rows;
mod schema;
mod snapshots;
mod verdicts;
mod walks;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use backends::native::Saved;
use jiff::Timestamp;
use model::event::Event;
use model::net::Net;
use model::promotion::{Promotion, Walk};
use model::race::Race;
use model::request::{End, Request};
use model::sandbox::{Actor, CreateRequest};
use model::units::Size;
use model::{PromotionId, RaceId, Sandbox, SandboxId, Snapshot, SnapshotId, Verdict, VerdictId};
use tokio::sync::{broadcast, mpsc, oneshot};

pub use error::Error;
pub use moves::{Facts, Move, Moved, NewRecord};
pub use requests::Requests;
pub use rows::Record;
pub use snapshots::SnapshotRecord;
pub use verdicts::Verdicts;

use ledger::{Call, Ledger, Message, Page};

/// A handle on the store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ledger: mpsc::Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    checkpoints: Mutex<rusqlite::Connection>,
    /// Bytes of requests, since the oldest were forgotten.
    written: AtomicU64,
    /// Never read, only subscribed from: the sending side belongs to the ledger, so that closing it ends every subscription.
    events: broadcast::Receiver<Event>,
}

impl Store {
    /// Opens `zeno.db` in this folder, making both if they do not exist.
    pub fn open(home: &Path) -> Result<Self, Error> {
        let path = schema::prepare(home)?;
        let connection = schema::open(&path)?;
        let checkpoints = schema::open(&path)?;
        let (publish, events) = broadcast::channel(EVENTS_BUFFERED);
        let (ledger, messages) = mpsc::channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || Ledger::new(connection, publish).serve(messages))
            .map_err(|source| Error::Thread { source })?;
        let (thread, checkpoints) = (Mutex::new(Some(thread)), Mutex::new(checkpoints));
        let inner = Inner { ledger, thread, checkpoints, written: AtomicU64::new(0), events };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Writes the record of a new sandbox, `requested` and at once `provisioning`.
    pub async fn insert(&self, new: NewRecord) -> Result<Sandbox, Error> {
        let row = moves::NewRow::of(new)?;
        self.call(move |page| moves::insert(page, row)).await
    }

    /// Moves a sandbox from its state to another. The only way to do so: the move is checked against
    /// [`model::State::next`], the row changed and the event written in one transaction.
    pub async fn transition(&self, id: SandboxId, change: Move) -> Result<Moved, Error> {
        self.call(move |page| moves::transition(page, id, &change)).await
    }

    pub async fn record(&self, id: SandboxId) -> Result<Option<Record>, Error> {
        self.call(move |page| rows::record(page.connection, id)).await
    }

    /// Oldest first.
    pub async fn records(&self, which: Which) -> Result<Vec<Record>, Error> {
        self.call(move |page| rows::records(page.connection, which)).await
    }

    /// The request that made a sandbox, with its environment: what is needed to start it or run something in it.
    /// None of a throwaway, or of a destroyed one.
    pub async fn request(&self, id: SandboxId) -> Result<Option<CreateRequest>, Error> {
        self.call(move |page| rows::request(page.connection, id)).await
    }

    /// The same without the environment, also of a throwaway.
    pub async fn bare_request(&self, id: SandboxId) -> Result<Option<CreateRequest>, Error> {
        self.call(move |page| rows::bare_request(page.connection, id)).await
    }

    /// Writes down that a sandbox's processes are ended for a moment, or that they are there again.
    pub async fn set_restarting(&self, id: SandboxId, restarting: bool) -> Result<(), Error> {
        self.call(move |page| rows::set_restarting(page.connection, id, restarting)).await
    }

    /// Writes the record of a snapshot; its sandbox stands on it from now on.
    pub async fn insert_snapshot(&self, new: SnapshotRecord) -> Result<(), Error> {
        let row = snapshots::NewRow::of(new)?;
        self.call(move |page| snapshots::insert(page, &row)).await
    }

    /// Oldest first.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotRecord>, Error> {
        self.call(move |page| snapshots::all(page.connection)).await
    }

    /// Removes the record of a snapshot. What stood on it stands on its parent from now on.
    pub async fn remove_snapshot(&self, id: SnapshotId, actor: Actor) -> Result<Snapshot, Error> {
        self.call(move |page| snapshots::remove(page, id, actor)).await
    }

    /// Records that a sandbox was taken back to a snapshot.
    pub async fn rolled_back(&self, sandbox: SandboxId, to: SnapshotId) -> Result<(), Error> {
        self.call(move |page| snapshots::rolled_back(page, sandbox, to)).await
    }

    /// Writes anew what snapshots stand on: of all of them, or of none.
    pub async fn set_saved(&self, saved: Vec<(SnapshotId, Saved)>) -> Result<(), Error> {
        let encode = |(id, saved): &(SnapshotId, Saved)| match serde_json::to_string(saved) {
            Ok(text) => Ok((*id, text)),
            Err(source) => Err(Error::EncodeSnapshot { id: *id, source }),
        };
        let texts = saved.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        self.call(move |page| snapshots::set_saved(page.connection, &texts)).await
    }

    /// Writes the record of a promotion, or writes it anew. What has become of it is an event, by this actor.
    pub async fn write_promotion(&self, promotion: Promotion, actor: Actor) -> Result<(), Error> {
        self.call(move |page| promotions::write(page, &promotion, actor)).await
    }

    /// Oldest first.
    pub async fn promotions(&self) -> Result<Vec<Promotion>, Error> {
        self.call(move |page| promotions::all(page.connection)).await
    }

    /// Writes down how a promotion went out so far.
    pub async fn write_walk(&self, walk: &Walk) -> Result<(), Error> {
        let row = walks::NewRow::of(walk)?;
        self.call(move |page| walks::write(page.connection, &row)).await
    }

    pub async fn walk(&self, promotion: PromotionId) -> Result<Option<Walk>, Error> {
        self.call(move |page| walks::one(page.connection, promotion)).await
    }

    pub async fn remove_walk(&self, promotion: PromotionId) -> Result<(), Error> {
        self.call(move |page| walks::remove(page.connection, promotion)).await
    }

    pub async fn walks(&self) -> Result<Vec<Walk>, Error> {
        self.call(move |page| walks::all(page.connection)).await
    }

    pub async fn set_snapshot_size(&self, id: SnapshotId, size: Size) -> Result<(), Error> {
        self.call(move |page| snapshots::set_size(page.connection, id, size)).await
    }

    /// Writes down what checks said.
    pub async fn insert_verdict(&self, verdict: Verdict) -> Result<(), Error> {
        let row = verdicts::NewRow::of(verdict)?;
        self.call(move |page| verdicts::insert(page, &row)).await
    }

    /// Oldest first.
    pub async fn verdicts(&self, which: Verdicts) -> Result<Vec<Verdict>, Error> {
        self.call(move |page| verdicts::read(page.connection, which)).await
    }

    /// Forgets the oldest verdicts beyond so many, and says which.
    pub async fn prune_verdicts(&self, kept: usize) -> Result<Vec<VerdictId>, Error> {
        self.call(move |page| verdicts::prune(page.connection, kept)).await
    }

    /// Writes down what came of a race, forgets the oldest beyond so many, and says which.
    pub async fn insert_race(&self, race: Race, kept: usize) -> Result<Vec<RaceId>, Error> {
        let row = races::NewRow::of(race)?;
        self.call(move |page| races::insert(page, &row, kept)).await
    }

    /// Oldest first.
    pub async fn races(&self) -> Result<Vec<Race>, Error> {
        self.call(move |page| races::all(page.connection)).await
    }

    /// Writes down what a sandbox tried to reach, and says under which number.
    pub async fn insert_request(&self, request: &Request) -> Result<u64, Error> {
        let row = requests::NewRow::of(request)?;
        let is_much = self.counts(&row);
        self.call(move |page| {
            let id = requests::insert(page.connection, &row)?;
            if is_much {
                rows::prune(page.connection)?;
            }
            Ok(id)
        })
        .await
    }

    /// Writes it anew, now that more is known.
    pub async fn write_request(&self, request: &Request) -> Result<(), Error> {
        let (id, row) = (request.id, requests::NewRow::of(request)?);
        let is_much = self.counts(&row);
        self.call(move |page| {
            requests::write(page.connection, id, &row)?;
            if is_much { rows::prune(page.connection) } else { Ok(()) }
        })
        .await
    }

    /// Writes down of all requests that go on that they ended so.
    pub async fn end_requests(&self, end: End) -> Result<usize, Error> {
        self.call(move |page| requests::end_all(page.connection, &end)).await
    }

    /// Was so much written since then that the oldest have to be forgotten?
    fn counts(&self, row: &requests::NewRow) -> bool {
        let size = row.size() as u64;
        let is_much = self.inner.written.fetch_add(size, Ordering::Relaxed) + size > requests::SLACK;
        if is_much {
            self.inner.written.store(0, Ordering::Relaxed);
        }
        is_much
    }

    /// Oldest first, without the texts of bodies.
    pub async fn requests(&self, which: Requests) -> Result<Vec<Request>, Error> {
        self.call(move |page| requests::read(page.connection, &which)).await
    }

    pub async fn request_of_sandbox(&self, id: u64) -> Result<Option<Request>, Error> {
        self.call(move |page| requests::one(page.connection, id)).await
    }

    pub async fn given_names(&self, sandbox: SandboxId) -> Result<Vec<String>, Error> {
        self.call(move |page| requests::given_names(page.connection, sandbox)).await
    }

    pub async fn give_name(&self, sandbox: SandboxId, number: u32, name: String) -> Result<(), Error> {
        self.call(move |page| requests::give_name(page.connection, sandbox, number, &name)).await
    }

    pub async fn set_net(
        &self,
        id: SandboxId,
        net: Net,
        labels: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        self.call(move |page| rows::set_net(page.connection, id, &net, &labels)).await
    }

    pub async fn set_expires(&self, id: SandboxId, expires: Timestamp) -> Result<(), Error> {
        self.call(move |page| rows::set_expires(page.connection, id, expires)).await
    }

    /// Says why a sandbox is still in its state.
    pub async fn note(&self, id: SandboxId, reason: String) -> Result<(), Error> {
        self.call(move |page| rows::note(page.connection, id, &reason)).await
    }

    /// What happened after this sequence number, oldest first.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.call(move |page| rows::events(page.connection, after, limit)).await
    }

    /// Events from now on, each after it was committed. A slow reader misses some and is told so.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.inner.events.resubscribe()
    }

    /// Forgets the oldest destroyed sandboxes and the oldest events.
    pub async fn prune(&self) -> Result<(), Error> {
        self.call(move |page| rows::prune(page.connection)).await
    }

    /// Brings the log back into the database file. Blocks, on a connection of its own, so that no caller waits for the disk.
    pub fn checkpoint(&self) -> Result<(), Error> {
        let connection = self.inner.checkpoints.lock().expect("no panic while checkpointing");
        let say =
            |statement| connection.query_row(statement, [], |counts| Ok((counts.get(1)?, counts.get(2)?)));
        let failed = |source| Error::Checkpoint { source };
        let (pages, done): (i64, i64) = say("PRAGMA wal_checkpoint(PASSIVE)").map_err(failed)?;
        // A log that was once long keeps its length. To cut it writers must wait, but now for next to nothing.
        if pages == done && pages > LONG_LOG {
            say("PRAGMA wal_checkpoint(TRUNCATE)").map(drop).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes what waits and closes the file. Later calls answer [`Error::Closed`].
    pub async fn close(&self) {
        if self.inner.ledger.send(Message::Close).await.is_err() {
            return;
        }
        let thread = self.inner.thread.lock().expect("no panic while closing").take();
        let joined = tokio::task::spawn_blocking(move || thread.map(JoinHandle::join)).await;
        if !matches!(joined, Ok(None | Some(Ok(())))) {
            tracing::error!("the store's thread panicked");
        }
    }

    async fn call<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Page<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Message::Job(Box::new(Call::new(work, reply)));
        self.inner.ledger.send(job).await.map_err(|_unsent| Error::Closed)?;
        answer.await.map_err(|_dropped| Error::Closed)?
    }
}

/// Which records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are not destroyed.
    Existing,
    /// The destroyed ones that are still remembered, too.
    All,
}

/// The clock, to the precision the store keeps.
#[must_use]
pub fn now() -> Timestamp {
    let now = Timestamp::now().as_microsecond();
    Timestamp::from_microsecond(now).expect("the present is in range")
}

/// Requests that may wait for the ledger before callers have to wait to ask.
const WAITING: usize = 1024;
/// How far a subscriber may fall behind before it has to read the store again.
const EVENTS_BUFFERED: usize = 1024;
/// Pages of the log, 4 MiB, beyond which it is cut.
const LONG_LOG: i64 = 1024;

#[cfg(test)]
mod tests;
