//! Work that takes long, told to the client as it goes on, if it wants to hear of it.

use lanes::Steps;
use model::{Code, Problem};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;

/// What a client hears of one call.
#[derive(Debug)]
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    told: f64,
}

impl Progress {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), told: 0.0 }
    }

    pub(super) async fn tell(&mut self, message: String) {
        let Some(token) = &self.token else { return };
        self.told += 1.0;
        let said = ProgressNotificationParam::new(token.clone(), self.told).with_message(message);
        crate::best_effort("tell a client how far it is", self.peer.notify_progress(said).await);
    }
}

/// Waits for the work, and tells its steps. Dropped, it no longer hears the steps, and the work ends by itself.
pub(super) async fn watch<S, T, W>(
    context: &RequestContext<RoleServer>,
    say: impl Fn(&S) -> Option<String>,
    work: impl FnOnce(Steps<S>) -> W,
) -> Result<T, Problem>
where
    W: Future<Output = Result<T, Problem>>,
{
    let mut progress = Progress::of(context);
    let (steps, mut told) = mpsc::channel(WAITING);
    let mut work = std::pin::pin!(work(steps));
    loop {
        tokio::select! {
            biased;
            Some(step) = told.recv() => if let Some(message) = say(&step) {
                progress.tell(message).await;
            },
            done = &mut work => return done,
        }
    }
}

/// A task of its own, for what must come to its own end when nobody hears it any more.
pub(super) async fn apart<T, W>(work: W) -> Result<T, Problem>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Problem>> + Send + 'static,
{
    tokio::spawn(work).await.unwrap_or_else(|error| Err(Problem::from_error(Code::Internal, &error)))
}

/// Steps that may wait to be told.
const WAITING: usize = 256;
