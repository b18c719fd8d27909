//! What is there, what is due, what is being made.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::view::Plan;
use model::SandboxId;

use super::Ware;
use super::spent::{Spent, Untouched};
use crate::native::store::{Folder, Stored};

/// One each of the last few views. A second of a kind was tried: under load it costs more than it saves.
const KINDS: usize = 3;
/// Folders that wait to be used again. More than a few were tried: a hundred at once gain nothing by it.
const SPENT: usize = 8;
/// Making one takes a few milliseconds; whoever would wait longer for it makes their own.
const WORTH_WAITING: Duration = Duration::from_millis(20);

/// What is still being made then is removed at the next start.
const WORTH_CLOSING: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(in crate::native) struct Stock {
    shelf: Mutex<Shelf>,
    made: Condvar,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Shelf {
    wares: Vec<Ware>,
    /// What to make next.
    due: Option<Stored>,
    making: Option<Plan>,
    is_closed: bool,
    /// The last one had to be waited for: they are asked for without a pause.
    is_hurried: bool,
    /// How many wait for a sandbox right now.
    waiting: usize,
    lent: HashMap<SandboxId, (Untouched, Stored)>,
    spent: Vec<Spent>,
}

/// Somebody waits for a sandbox as long as this lives.
#[derive(Debug)]
pub(in crate::native) struct Waiting<'a>(&'a Stock);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.shelf().waiting -= 1;
    }
}

/// One is being made as long as this lives.
#[derive(Debug)]
pub(super) struct Making<'a>(&'a Stock);

impl Making<'_> {
    /// Puts it on the shelf. Returns what there is no more room for.
    pub(super) fn done(self, ware: Ware) -> Option<Ware> {
        let mut shelf = self.0.shelf();
        shelf.wares.push(ware);
        (shelf.wares.len() > KINDS).then(|| shelf.wares.remove(0))
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.shelf().making = None;
        self.0.made.notify_all();
    }
}

impl Stock {
    pub(in crate::native) fn waiting(&self) -> Waiting<'_> {
        self.shelf().waiting += 1;
        Waiting(self)
    }

    /// Names a folder in stock. Real ids are random, so that they do not meet.
    pub(super) fn next_id(&self) -> SandboxId {
        SandboxId::from_bits(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Has one more made. `true`: at once, please.
    pub(super) fn order(&self, stored: Stored) -> bool {
        let mut shelf = self.shelf();
        shelf.due = Some(stored);
        shelf.is_hurried
    }

    /// Forgets what was ordered.
    pub(super) fn cancel(&self) {
        self.shelf().due = None;
    }

    /// Is something to be made, and nobody waiting for a sandbox of their own?
    pub(super) fn is_due(&self) -> bool {
        let shelf = self.shelf();
        shelf.due.is_some() && shelf.waiting == 0
    }

    /// What to make now, if there is none already.
    pub(super) fn begin(&self) -> Option<(Stored, Making<'_>)> {
        let mut shelf = self.shelf();
        if shelf.is_closed || shelf.making.is_some() || shelf.waiting > 0 {
            return None;
        }
        let stored = shelf.due.take()?;
        if shelf.wares.iter().any(|ware| ware.stored.plan.shows_the_same_as(&stored.plan)) {
            return None;
        }
        shelf.making = Some(stored.plan.clone());
        Some((stored, Making(self)))
    }

    /// From now on nothing is made. Waits for what is being made.
    pub(super) fn close(&self) {
        let mut shelf = self.shelf();
        shelf.is_closed = true;
        let made = self.made.wait_timeout_while(shelf, WORTH_CLOSING, |shelf| shelf.making.is_some());
        drop(made.unwrap_or_else(PoisonError::into_inner));
    }

    /// One that shows this. Waits for one that is nearly done, unless others would wait for the same.
    pub(super) fn take(&self, plan: &Plan) -> Option<Ware> {
        let mut shelf = self.shelf();
        let is_coming = |shelf: &Shelf| {
            shelf.waiting == 1 && shelf.making.as_ref().is_some_and(|made| made.shows_the_same_as(plan))
        };
        shelf.is_hurried = is_coming(&shelf);
        if shelf.is_hurried {
            let waited = self.made.wait_timeout_while(shelf, WORTH_WAITING, |shelf| is_coming(shelf));
            shelf = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let at = shelf.wares.iter().position(|ware| ware.stored.plan.shows_the_same_as(plan))?;
        Some(shelf.wares.remove(at))
    }

    pub(super) fn take_if(&self, wanted: impl Fn(&Ware) -> bool) -> Option<Ware> {
        let mut shelf = self.shelf();
        let at = shelf.wares.iter().position(wanted)?;
        Some(shelf.wares.remove(at))
    }

    /// Remembers what the folder of a sandbox looks like before anything runs in it.
    pub(super) fn lend(&self, id: SandboxId, folder: &Folder, stored: &Stored) {
        if let Ok(untouched) = Untouched::look(folder, &stored.plan.parts) {
            self.shelf().lent.insert(id, (untouched, stored.clone()));
        }
    }

    pub(in crate::native) fn has_lent(&self, id: SandboxId) -> bool {
        self.shelf().lent.contains_key(&id)
    }

    /// The folder of a lent sandbox will never be as it was.
    pub(in crate::native) fn forget(&self, id: SandboxId) {
        self.shelf().lent.remove(&id);
    }

    /// Is the folder of a lent sandbox still as it was?
    pub(super) fn give_back(&self, id: SandboxId, folder: &Folder) -> Option<Stored> {
        let (before, stored) = self.shelf().lent.remove(&id)?;
        let now = Untouched::look(folder, &stored.plan.parts).ok()?;
        (now == before).then_some(stored)
    }

    /// Keeps a folder for the next one. Returns those there is no more room for.
    pub(super) fn keep_spent(
        &self,
        folder: Folder,
        stored: Stored,
        ending: Option<OwnedFd>,
    ) -> Option<Folder> {
        let mut shelf = self.shelf();
        shelf.spent.push(Spent { folder, stored, ending });
        (shelf.spent.len() > SPENT).then(|| shelf.spent.remove(0).folder)
    }

    pub(super) fn take_spent(&self, wanted: &Stored) -> Option<Spent> {
        let mut shelf = self.shelf();
        let fits = |spent: &Spent| spent.is_free() && spent.stored.plan.shows_the_same_as(&wanted.plan);
        let at = shelf.spent.iter().position(fits)?;
        Some(shelf.spent.remove(at))
    }

    pub(super) fn drop_spent(&self) -> Vec<Folder> {
        self.shelf().spent.drain(..).map(|spent| spent.folder).collect()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
