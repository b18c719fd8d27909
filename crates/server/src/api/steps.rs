//! Work that tells its steps, as lines of JSON. Whoever closes the connection ends it.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use lanes::Steps;
use model::{Code, Problem};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::Stop;
use super::query::{Param, ParamKind};
use super::refusal::Refusal;
use super::route::LINES;
use crate::line;

pub(super) const STEPS: &[Param] = &[Param {
    name: "steps",
    kind: ParamKind::Flag,
    about: "Tell every step as a line; the answer is the last line",
}];

/// A line that can tell of a failure, too.
pub(super) trait Step: Serialize + Send + 'static {
    fn problem(problem: Problem) -> Self;
}

/// Answers with the steps of the work, and its last word. What fails before the first step is an ordinary refusal.
pub(super) async fn told<T, W>(stop: Stop, work: impl FnOnce(Steps<T>) -> W) -> Result<Response, Refusal>
where
    T: Step,
    W: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let (sender, steps) = mpsc::channel(WAITING);
    let (end, ended) = oneshot::channel();
    let work = work(sender);
    tokio::spawn(async move {
        let last = tokio::select! {
            last = work => last,
            () = stop.requested() => Err(Problem::new(Code::NotReady, "the daemon is shutting down")),
        };
        if end.send(last).is_err() {
            tracing::debug!("the caller left before the last word");
        }
    });
    let mut telling = Telling { steps, ended: Some(ended) };
    let Some(first) = telling.next().await else { return Err(lost().into()) };
    let lines = stream::unfold((Some(first?), telling), async |(first, mut telling)| {
        let step = match first {
            Some(first) => first,
            None => telling.next().await?.unwrap_or_else(T::problem),
        };
        Some((Ok::<_, Infallible>(line::encode(&step)), (None, telling)))
    });
    Ok(([(CONTENT_TYPE, LINES)], Body::from_stream(lines)).into_response())
}

struct Telling<T> {
    steps: mpsc::Receiver<T>,
    ended: Option<oneshot::Receiver<Result<T, Problem>>>,
}

impl<T> Telling<T> {
    /// The steps, and then the last word.
    async fn next(&mut self) -> Option<Result<T, Problem>> {
        if let Some(step) = self.steps.recv().await {
            return Some(Ok(step));
        }
        Some(self.ended.take()?.await.unwrap_or_else(|_panicked| Err(lost())))
    }
}

fn lost() -> Problem {
    Problem::new(Code::Internal, "zeno lost track of the request")
}

/// Steps that may wait to be read.
const WAITING: usize = 256;
