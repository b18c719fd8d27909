//! Copies entries, a few on the spot, many on several threads.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use super::copy::{Copy, Scratch};
use super::index::{DirId, Entry, Name};
use super::layer::Flavour;

/// What became of a copy.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) dir: DirId,
    pub(super) name: Name,
    pub(super) is_fresh: bool,
    /// `None`: its source had vanished.
    pub(super) made: io::Result<Option<Entry>>,
}

#[derive(Debug)]
pub(super) struct Pool<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    scratch: &'env Scratch,
    flavour: Flavour,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    given: usize,
    batch: Vec<Copy>,
    threads: Option<SyncSender<Vec<Copy>>>,
    workers: Vec<std::thread::ScopedJoinHandle<'scope, ()>>,
}

impl<'scope, 'env> Pool<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, scratch: &'env Scratch, flavour: Flavour) -> Self {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        Self {
            scope,
            scratch,
            flavour,
            outcomes,
            given: 0,
            batch: Vec::new(),
            threads: None,
            workers: Vec::new(),
        }
    }

    pub(super) fn give(&mut self, copy: Copy) {
        self.given += 1;
        if self.given <= ON_THE_SPOT {
            return run(copy, self.scratch, self.flavour, &self.outcomes);
        }
        self.batch.push(copy);
        if self.batch.len() >= BATCH {
            let batch = std::mem::take(&mut self.batch);
            let threads = match self.threads.take() {
                Some(threads) => threads,
                None => self.start(),
            };
            // The threads end only when this end hangs up, so there is always somebody to take it.
            threads.send(batch).expect("copying threads outlive the pool");
            self.threads = Some(threads);
        }
    }

    /// Waits for all copies given so far and tells what became of them.
    pub(super) fn finish(&mut self) -> Vec<Outcome> {
        for copy in std::mem::take(&mut self.batch) {
            run(copy, self.scratch, self.flavour, &self.outcomes);
        }
        drop(self.threads.take());
        for worker in self.workers.drain(..) {
            worker.join().expect("copying threads do not panic");
        }
        std::mem::take(&mut self.outcomes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(&mut self) -> SyncSender<Vec<Copy>> {
        let (sender, receiver) = sync_channel::<Vec<Copy>>(QUEUED_BATCHES);
        let receiver = Arc::new(Mutex::new(receiver));
        let count = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
        for _ in 0..count {
            let (receiver, outcomes) = (receiver.clone(), self.outcomes.clone());
            let (scratch, flavour) = (self.scratch, self.flavour);
            self.workers.push(self.scope.spawn(move || {
                while let Some(batch) = next(&receiver) {
                    batch.into_iter().for_each(|copy| run(copy, scratch, flavour, &outcomes));
                }
            }));
        }
        sender
    }
}

fn next(receiver: &Mutex<Receiver<Vec<Copy>>>) -> Option<Vec<Copy>> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn run(copy: Copy, scratch: &Scratch, flavour: Flavour, outcomes: &Mutex<Vec<Outcome>>) {
    let made = copy.run(scratch, flavour);
    let Copy { dir, name, is_fresh, .. } = copy;
    let outcome = Outcome { dir, name, is_fresh, made };
    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
}

/// Below this, starting threads costs more than they save.
const ON_THE_SPOT: usize = 64;
const BATCH: usize = 16;
/// Each batch holds descriptors open: few enough for a limit of 1024.
const QUEUED_BATCHES: usize = 4;
