//! Commands: run, exec, attach, signal.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::Conversation;
use model::exec::{Exec, ExecRequest, FrameKind, Outcome, RunRequest};
use model::{Code, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::App;
use super::body::{Input, Which, WhichExec};
use super::converse::{Begun, Fate, Removal, Removing, converse};
use super::peer::Caller;
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::relay::{LAST_SIGNAL, Violation, plain_outcome, plain_problem, typed};
use crate::frames::FrameReader;

pub(super) const EXEC: &[Param] = &[Param {
    name: "detach",
    kind: ParamKind::Flag,
    about: "Answer as soon as the command has started, and leave it running",
}];

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    pub signal: i32,
}

pub(super) async fn run(
    State(app): State<App>,
    caller: Caller,
    Input(request): Input<RunRequest>,
) -> Result<Response, Refusal> {
    let App { control, stop, .. } = app;
    converse(caller, stop, move |reports| async move {
        let keep = request.keep;
        let (sandbox, Conversation { stream: init, hindsight }) =
            control.run(request, &|progress| reports.put(progress)).await?;
        let id = sandbox.id;
        let removal = move |fate: Fate| {
            Box::pin(async move {
                match fate {
                    Fate::Ended(keep) => control.dismiss(id, keep).await,
                    Fate::Abandoned => control.destroy(&id.to_string()).await.map(|_destroyed| None),
                }
            }) as Removing
        };
        let removal = if keep { None } else { Some(Box::new(removal) as Removal) };
        Ok(Begun { init, hindsight, sandbox: Some(Box::new(sandbox)), removal })
    })
    .await
}

pub(super) async fn exec(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
    caller: Caller,
    Input(request): Input<ExecRequest>,
) -> Result<Response, Refusal> {
    let App { control, stop, .. } = app;
    if query.only(EXEC)?.flag("detach")?.unwrap_or(false) {
        let exec = started(control.exec(&which, request).await?.stream).await?;
        return Ok((StatusCode::ACCEPTED, Json(exec)).into_response());
    }
    converse(caller, stop, move |_| async move {
        let Conversation { stream: init, hindsight } = control.exec(&which, request).await?;
        Ok(Begun { init, hindsight, sandbox: None, removal: None })
    })
    .await
}

pub(super) async fn attach(
    State(app): State<App>,
    WhichExec(which, exec): WhichExec,
    caller: Caller,
) -> Result<Response, Refusal> {
    let App { control, stop, .. } = app;
    converse(caller, stop, move |_| async move {
        let Conversation { stream: init, hindsight } = control.attach(&which, exec).await?;
        Ok(Begun { init, hindsight, sandbox: None, removal: None })
    })
    .await
}

pub(super) async fn list(State(app): State<App>, Which(which): Which) -> Result<Json<Vec<Exec>>, Refusal> {
    Ok(Json(app.control.execs(&which).await?))
}

pub(super) async fn signal(
    State(app): State<App>,
    WhichExec(which, exec): WhichExec,
    Input(request): Input<SignalRequest>,
) -> Result<StatusCode, Refusal> {
    if !(1..=LAST_SIGNAL).contains(&request.signal) {
        return Err(Refusal::bad_request(format!(
            "there is no signal {}: 1 to {LAST_SIGNAL}",
            request.signal
        )));
    }
    app.control.signal(&which, exec, request.signal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What init says first of a command nobody stays to watch.
pub(crate) async fn started(init: UnixStream) -> Result<Exec, Problem> {
    let internal = |error: &dyn std::error::Error| Problem::from_error(Code::Internal, error);
    let first = FrameReader::new(init).next().await.map_err(|error| internal(&error))?;
    match first {
        Some((kind @ FrameKind::Started, payload)) => typed(kind, &payload).map_err(|error| internal(&error)),
        Some((kind @ FrameKind::Problem, payload)) => {
            Err(plain_problem(&typed(kind, &payload).map_err(|error| internal(&error))?))
        }
        Some((kind @ FrameKind::Ended, payload)) => {
            let outcome: Outcome = typed(kind, &payload).map_err(|error| internal(&error))?;
            Err(not_started(plain_outcome(outcome)))
        }
        Some((kind, _)) => Err(internal(&Violation::Kind { kind })),
        None => Err(Problem::new(Code::NotReady, "the sandbox ended before the command started")),
    }
}

pub(crate) fn not_started(outcome: Outcome) -> Problem {
    let problem = Problem::new(Code::BadRequest, "the command did not start");
    match outcome {
        Outcome::NotStarted { code: 127, reason } => Problem::new(Code::ProgramNotFound, reason),
        Outcome::NotStarted { code: 126, reason } => Problem::new(Code::ProgramNotExecutable, reason),
        Outcome::NotStarted { reason, .. } | Outcome::SandboxEnded { reason } => {
            Problem { causes: vec![reason], ..problem }
        }
        Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::TimedOut
        | Outcome::OutputLimit
        | Outcome::OutOfMemory { .. } => problem,
    }
}
