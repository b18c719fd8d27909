//! Bringing what a sandbox changed into reality and out to stages, and taking it back.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use lanes::Steps;
use model::promotion::{AdvanceRequest, Journey, PromoteRequest, PromoteStep, UndoRequest, Walked};
use model::{Code, Problem};
use tokio::sync::mpsc;

use super::body::{Input, Which};
use super::door::Through;
use super::query::Query;
use super::refusal::Refusal;
use super::steps::{STEPS, Step, told};
use super::{App, Stop};

impl Step for PromoteStep {
    fn problem(problem: Problem) -> Self {
        Self::Problem { problem }
    }
}

pub(super) async fn promote(
    State(app): State<App>,
    Which(which): Which,
    Extension(through): Extension<Through>,
    query: Query,
    Input(request): Input<PromoteRequest>,
) -> Result<Response, Refusal> {
    through.may_approve(&request.approved)?;
    let App { lanes, stop, .. } = app;
    walked(stop, query, |steps| async move { lanes.walk(&which, request, &steps).await }).await
}

pub(super) async fn advance(
    State(app): State<App>,
    Which(which): Which,
    Extension(through): Extension<Through>,
    query: Query,
    Input(request): Input<AdvanceRequest>,
) -> Result<Response, Refusal> {
    through.may_approve(&request.approved)?;
    let App { lanes, stop, .. } = app;
    walked(stop, query, |steps| async move { lanes.advance(&which, request, &steps).await }).await
}

pub(super) async fn list(State(app): State<App>) -> Result<Json<Vec<Journey>>, Refusal> {
    Ok(Json(app.lanes.promotions().await?))
}

pub(super) async fn undo(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<UndoRequest>,
) -> Result<Json<Journey>, Refusal> {
    undone(app, Some(which), request).await
}

pub(super) async fn undo_last(
    State(app): State<App>,
    Input(request): Input<UndoRequest>,
) -> Result<Json<Journey>, Refusal> {
    undone(app, None, request).await
}

/// Whoever leaves ends a stage, which is then taken back: so the work is a task of its own.
async fn walked<W>(
    stop: Stop,
    query: Query,
    work: impl FnOnce(Steps<PromoteStep>) -> W,
) -> Result<Response, Refusal>
where
    W: Future<Output = Result<Walked, Problem>> + Send + 'static,
{
    if query.only(STEPS)?.flag("steps")?.unwrap_or(false) {
        let last = |walked| PromoteStep::Walked { walked: Box::new(walked) };
        return told(stop, |steps| {
            let work = work(steps);
            async move { work.await.map(last) }
        })
        .await;
    }
    let (steps, _listening) = mpsc::channel(1);
    let work = work(steps);
    let task = tokio::spawn(async move {
        tokio::select! {
            walked = work => walked,
            () = stop.requested() => Err(Problem::new(Code::NotReady, "the daemon is shutting down")),
        }
    });
    Ok(Json(joined(task.await)?).into_response())
}

/// To the end, even if whoever asked goes away: half taken back would be worse.
async fn undone(app: App, which: Option<String>, request: UndoRequest) -> Result<Json<Journey>, Refusal> {
    let task = tokio::spawn(async move { app.lanes.undo(which.as_deref(), request).await });
    Ok(Json(joined(task.await)?))
}

fn joined<T>(joined: Result<Result<T, Problem>, tokio::task::JoinError>) -> Result<T, Problem> {
    joined.unwrap_or_else(|error| Err(Problem::from_error(Code::Internal, &error)))
}
