//! `events`: what happened.

use model::Problem;
use model::event::Event;
use tokio::sync::broadcast;

use crate::control::Control;
use crate::follow::Follow;
use crate::refusal;

impl Control {
    /// What happened after this sequence number, oldest first.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, Problem> {
        self.inner.store.events(after, limit).await.map_err(|error| refusal::store(&error))
    }

    /// Events from now on. A slow reader misses some; [`Self::follow`] does not.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.inner.store.subscribe()
    }

    /// Every event after this sequence number, past and to come.
    #[must_use]
    pub fn follow(&self, after: u64) -> Follow {
        Follow::new(self.inner.store.clone(), after)
    }
}
