//! A stream of events without gaps: first from the store, then as they happen.

use std::collections::VecDeque;

use model::Problem;
use model::event::Event;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::refusal;
use crate::store::{self, Store};

/// Every event after a cursor, in order, none left out. The one exception: what the store has forgotten by its own limit.
#[derive(Debug)]
pub struct Follow {
    store: Store,
    live: broadcast::Receiver<Event>,
    /// The last one handed out.
    cursor: u64,
    read: VecDeque<Event>,
    source: Source,
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Store,
    Live,
}

impl Follow {
    pub(crate) fn new(store: Store, after: u64) -> Self {
        // Subscribed before the store is read, so nothing falls between the two.
        let live = store.subscribe();
        Self { store, live, cursor: after, read: VecDeque::new(), source: Source::Store }
    }

    /// Waits for the next event. `None` when the daemon shuts down.
    pub async fn next(&mut self) -> Result<Option<Event>, Problem> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.cursor = event.sequence;
                return Ok(Some(event));
            }
            match self.source {
                Source::Store => match self.store.events(self.cursor, CHUNK).await {
                    Ok(events) if events.is_empty() => self.source = Source::Live,
                    Ok(events) => self.read.extend(events),
                    Err(store::Error::Closed) => return Ok(None),
                    Err(error) => return Err(refusal::store(&error)),
                },
                Source::Live => match self.live.recv().await {
                    Ok(event) if event.sequence <= self.cursor => {}
                    Ok(event) if event.sequence == self.cursor + 1 => self.read.push_back(event),
                    // Too slow, or asked for what is still to come: the store knows.
                    Ok(_) | Err(RecvError::Lagged(_)) => self.source = Source::Store,
                    Err(RecvError::Closed) => return Ok(None),
                },
            }
        }
    }
}

/// Events read at once.
const CHUNK: usize = 256;

#[cfg(test)]
mod tests {
    use model::{SandboxId, State};

    use super::*;
    use crate::store::{Move, NewRecord};

    async fn happen(store: &Store, sandboxes: std::ops::Range<u64>) {
        for bits in sandboxes {
            let id = SandboxId::from_bits(bits);
            let new = NewRecord {
                id,
                request: Default::default(),
                expires: None,
                throwaway: false,
                snapshot: None,
            };
            store.insert(new).await.unwrap();
            store.transition(id, Move::to(State::Destroying).then(State::Destroyed)).await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_missed_between_store_and_live_nor_by_a_slow_reader() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        happen(&store, 0..50).await;
        let mut follow = Follow::new(store.clone(), 3);
        assert_eq!(follow.next().await.unwrap().unwrap().sequence, 4);
        // More than a subscriber's buffer holds, while nobody reads.
        happen(&store, 50..400).await;
        let (last, writer) = (
            4 * 600,
            tokio::spawn({
                let store = store.clone();
                async move { happen(&store, 400..600).await }
            }),
        );
        for expected in 5..=last {
            assert_eq!(follow.next().await.unwrap().unwrap().sequence, expected);
        }
        writer.await.unwrap();
        store.close().await;
        assert_eq!(follow.next().await.unwrap(), None);
    }
}
