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
        self.tell(&request);
        Ok(request)
    }

    /// Writes down more of it: how it ended, or that it was denied after all.
    pub(crate) async fn rewrite(&self, request: &Request) {
        if let Err(problem) = self.control.rewrite_request(request).await {
            tracing::warn!(%problem, id = request.id, "how a request ended is not on record");
        }
        self.journal.write(request).await;
        self.tell(request);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Request> {
        self.live.subscribe()
    }

    /// Without the texts of bodies: thousands of these wait for whoever is slow.
    fn tell(&self, request: &Request) {
        let mut told = request.clone();
        if let Some(http) = told.http.as_mut() {
            http.request.text = None;
            if let Some(response) = http.response.as_mut() {
                response.text = None;
            }
        }
        if self.live.send(told).is_err() {
            tracing::trace!("nobody follows the requests");
        }
    }
}

/// How far a follower may fall behind before it has to read the store.
const BUFFERED: usize = 4096;
