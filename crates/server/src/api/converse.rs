//! One task owns a conversation from the request to the removal of a throwaway sandbox, so that nothing is
//! left behind whenever the caller leaves.

use axum::response::Response;
use control::{Hindsight, Keep};
use model::exec::Progress;
use model::{Code, Problem, Sandbox, Snapshot};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};

use super::Stop;
use super::peer::{Caller, Incoming, Message, Out, Pending};
use super::refusal::Refusal;
use super::relay::{End, relay};

/// A command that runs.
pub(super) struct Begun {
    pub(super) init: UnixStream,
    pub(super) hindsight: Hindsight,
    /// Told to the caller before the rest.
    pub(super) sandbox: Option<Box<Sandbox>>,
    /// How to remove the sandbox when the command has ended.
    pub(super) removal: Option<Removal>,
}

/// Removes a throwaway.
pub(super) type Removal = Box<dyn FnOnce(Fate) -> Removing + Send>;
pub(super) type Removing = std::pin::Pin<Box<dyn Future<Output = Result<Option<Snapshot>, Problem>> + Send>>;

/// What became of a throwaway's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Ended(Keep),
    /// Nobody waits for it any more; it may still run.
    Abandoned,
}

/// Where the work before the command reports to. Only the latest report is kept.
#[derive(Debug)]
pub(super) struct Reports(watch::Sender<Option<Progress>>);

impl Reports {
    pub(super) fn put(&self, progress: Progress) {
        self.0.send_replace(Some(progress));
    }
}

/// Begins a command and answers with its conversation. What fails before there is anything to report is an
/// ordinary refusal.
pub(super) async fn converse<B, F>(caller: Caller, stop: Stop, begin: B) -> Result<Response, Refusal>
where
    B: FnOnce(Reports) -> F,
    F: Future<Output = Result<Begun, Problem>> + Send + 'static,
{
    let (response, pending) = caller.answer();
    let (sender, reports) = watch::channel(None);
    let (tell, told) = oneshot::channel();
    tokio::spawn(own(begin(Reports(sender)), reports, pending, tell, stop));
    match told.await {
        Ok(Ok(())) => Ok(response),
        Ok(Err(problem)) => Err(problem.into()),
        Err(dropped) => Err(Problem::from_error(Code::Internal, &dropped).into()),
    }
}

async fn own(
    begin: impl Future<Output = Result<Begun, Problem>>,
    mut reports: watch::Receiver<Option<Progress>>,
    pending: Pending,
    tell: oneshot::Sender<Result<(), Problem>>,
    stop: Stop,
) {
    let mut begin = std::pin::pin!(begin);
    let early = tokio::select! {
        biased;
        begun = &mut begin => Some(begun),
        Ok(()) = reports.changed() => None,
    };
    let early = match early {
        Some(Err(problem)) => {
            if tell.send(Err(problem)).is_err() {
                tracing::debug!("the caller left before it could be refused");
            }
            return;
        }
        Some(Ok(begun)) => Some(begun),
        None => None,
    };
    // A failed send means that the caller left; then opening fails as well, or the first word does.
    let opened = match tell.send(Ok(())) {
        Ok(()) => pending.open().await.inspect_err(|error| {
            tracing::debug!(error = error as &dyn std::error::Error, "no conversation");
        }),
        Err(_unheard) => return abandon(settle(early, begin).await).await,
    };
    let Ok((mut out, mut incoming)) = opened else {
        return abandon(settle(early, begin).await).await;
    };
    let begun = match early {
        Some(begun) => Ok(begun),
        None => report_until(begin, reports, &mut out).await,
    };
    match begun {
        Ok(begun) => speak(begun, out, &mut incoming, &stop).await,
        Err(problem) => log_gone(out.say(Message::Problem(problem)).await),
    }
}

async fn settle(
    early: Option<Begun>,
    begin: std::pin::Pin<&mut impl Future<Output = Result<Begun, Problem>>>,
) -> Result<Begun, Problem> {
    match early {
        Some(begun) => Ok(begun),
        None => begin.await,
    }
}

/// Nobody is there to hear; a throwaway sandbox must go all the same.
async fn abandon(begun: Result<Begun, Problem>) {
    match begun {
        Ok(Begun { removal: Some(removal), .. }) => remove_unheard(removal).await,
        Ok(Begun { removal: None, .. }) => {}
        Err(problem) => tracing::debug!(?problem, "failed, but the caller left before"),
    }
}

async fn remove_unheard(removal: Removal) {
    if let Err(problem) = removal(Fate::Abandoned).await {
        tracing::error!(?problem, "failed to remove a throwaway sandbox that nobody waits for");
    }
}

/// Passes reports on until the work is done, whether or not the caller still listens.
async fn report_until<F>(
    mut begin: std::pin::Pin<&mut F>,
    mut reports: watch::Receiver<Option<Progress>>,
    out: &mut Out,
) -> F::Output
where
    F: Future,
{
    // The first report was seen before the connection was ready.
    reports.mark_changed();
    loop {
        tokio::select! {
            biased;
            done = &mut begin => return done,
            Ok(()) = reports.changed() => {
                let report = reports.borrow_and_update().clone();
                if let Some(progress) = report && let Err(gone) = out.say(Message::Progress(progress)).await {
                    log_gone(Err(gone));
                    return begin.await;
                }
            }
        }
    }
}

async fn speak(begun: Begun, mut out: Out, incoming: &mut Incoming, stop: &Stop) {
    let Begun { init, hindsight, sandbox, removal } = begun;
    let end = match sandbox {
        Some(sandbox) => match out.say(Message::Sandbox(sandbox)).await {
            Ok(()) => relay(init, &hindsight, &mut out, incoming, stop).await,
            Err(gone) => {
                log_gone(Err(gone));
                End::CallerGone
            }
        },
        None => relay(init, &hindsight, &mut out, incoming, stop).await,
    };
    let Some(removal) = removal else { return };
    match end {
        // What becomes of it is for the next daemon to decide, which finds it again.
        End::Stopping => {}
        End::CallerGone | End::Failed => remove_unheard(removal).await,
        End::Ended(keep) => {
            let last = match removal(Fate::Ended(keep)).await {
                Ok(kept) => Message::Removed(kept.map(Box::new)),
                Err(problem) => Message::Problem(problem),
            };
            log_gone(out.say(last).await);
        }
    }
}

fn log_gone(said: Result<(), super::peer::Gone>) {
    crate::best_effort("tell the caller", said);
}
