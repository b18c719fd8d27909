//! Writes down what sandboxes tried to reach, and tells whoever follows.

use control::Control;
use model::request::Request;
use tokio::sync::broadcast;

use crate::journal::Journal;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    control: Control,
    live: broadcast::Sender<Request>,
    journal: Journal,
}

impl Recorder {
    pub(crate) fn new(control: Control) -> Self {
        let journal = Journal::open(control.home());
        Self { control, live: broadcast::Sender::new(BUFFERED), journal }
    }

    /// Writes it down and gives it its number. Whoever made the attempt waits for this: what is not on record does not
    /// happen.
    pub(crate) async fn begin(&self, mut request: Request) -> Result<Request, model::Problem> {
        request.id = self.control.record_request(&request).await?;
        self.journal.write(&request).await;
        if self.live.send(request.clone()).is_err() {
            tracing::trace!("nobody follows the requests");
        }
        Ok(request)
    }

    /// Writes down more of it.
    pub(crate) async fn rewrite(&self, request: &Request) {
        if let Err(problem) = self.control.rewrite_request(request).await {
            tracing::warn!(%problem, id = request.id, "how a request ended is not on record");
        }
        self.journal.write(request).await;
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Request> {
        self.live.subscribe()
    }
}

/// How far a follower may fall behind before it misses some, which it is told.
const BUFFERED: usize = 4096;
