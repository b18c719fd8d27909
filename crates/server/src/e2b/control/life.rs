//! From state to state: connect, pause, timeouts, kill.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use model::limits::OnExpire;
use model::units::Span;
use model::{Code, Problem, Sandbox, SandboxId, State as Life};

use super::body::Body;
use super::create::{DEFAULT_TIMEOUT, made, seconds};
use super::wire::{Connect, Pause, Refresh, Timeout};
use crate::e2b::E2b;
use crate::e2b::failure::Failure;

/// The sandbox that a path names, by its whole id: what programs say is no name that a person typed.
pub(super) async fn find(door: &E2b, id: &str) -> Result<Sandbox, Failure> {
    let missing = || Failure::not_found(format!("sandbox `{id}` was not found"));
    id.parse::<SandboxId>().map_err(|_no_id| missing())?;
    let sandbox = door.app.control.get(id).await?;
    match sandbox.state {
        Life::Requested | Life::Provisioning | Life::Ready | Life::Active | Life::Paused | Life::Stopped => {
            Ok(sandbox)
        }
        // With its files; E2B calls that paused if it was made so, and gone if not.
        Life::Expired if sandbox.limits.on_expire != Some(OnExpire::Destroy) => Ok(sandbox),
        Life::Expired | Life::Unreachable | Life::Failed | Life::Destroying | Life::Destroyed => {
            Err(missing())
        }
    }
}

pub(super) fn is_running(sandbox: &Sandbox) -> bool {
    matches!(sandbox.state, Life::Ready | Life::Active)
}

pub(super) async fn connect(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(Connect { timeout, memory }): Body<Connect>,
) -> Result<Response, Failure> {
    let sandbox = find(&door, &id).await?;
    let timeout = seconds(timeout.unwrap_or(DEFAULT_TIMEOUT));
    if is_running(&sandbox) {
        let until = Timestamp::now() + timeout.0;
        // Who joins does not shorten the time that another has asked for.
        if sandbox.expires.is_some_and(|expires| expires < until) {
            door.app.control.extend(&id, timeout).await?;
        }
        return Ok((StatusCode::OK, Json(made(&door, &sandbox))).into_response());
    }
    if memory == Some(false) && sandbox.state == Life::Paused {
        door.app.control.stop(&id).await?;
    }
    raise(&door, &id, timeout).await?;
    Ok((StatusCode::CREATED, Json(made(&door, &sandbox))).into_response())
}

pub(super) async fn resume(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(Connect { timeout, .. }): Body<Connect>,
) -> Result<Response, Failure> {
    let sandbox = find(&door, &id).await?;
    if is_running(&sandbox) {
        return Err(Failure::conflict(format!("sandbox `{id}` is already running")));
    }
    raise(&door, &id, seconds(timeout.unwrap_or(DEFAULT_TIMEOUT))).await?;
    Ok((StatusCode::CREATED, Json(made(&door, &sandbox))).into_response())
}

/// Has a paused sandbox run again, because somebody talks to it.
pub(in crate::e2b) async fn wake(door: &E2b, sandbox: &Sandbox) -> Result<Sandbox, Failure> {
    raise(door, &sandbox.id.to_string(), seconds(DEFAULT_TIMEOUT)).await
}

async fn raise(door: &E2b, id: &str, timeout: Span) -> Result<Sandbox, Failure> {
    let (control, id) = (door.app.control.clone(), id.to_owned());
    to_the_end(async move {
        let sandbox = control.get(&id).await?;
        let raised = match sandbox.state {
            Life::Paused => control.resume(&id).await,
            _ => control.start(&id).await,
        };
        match raised {
            Ok(_) => {}
            // Two who talk to it at once both wake it.
            Err(_) if is_running(&control.get(&id).await?) => {}
            Err(problem) => return Err(problem.into()),
        }
        Ok(control.extend(&id, timeout).await?)
    })
    .await
}

/// Who asked may leave in the middle: what belongs together is done all the same.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| Failure::from(Problem::from_error(Code::Internal, &error)))?
}

pub(super) async fn pause(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(Pause { memory }): Body<Pause>,
) -> Result<StatusCode, Failure> {
    let sandbox = find(&door, &id).await?;
    if !is_running(&sandbox) {
        return Err(Failure::conflict(format!("sandbox `{id}` is already paused")));
    }
    let control = door.app.control.clone();
    to_the_end(async move {
        // First: one that is paused and has no time left would be gone.
        control.extend(&id, PAUSED).await?;
        let paused = if memory.unwrap_or(true) { control.pause(&id).await } else { control.stop(&id).await };
        if let Err(problem) = paused {
            let left = sandbox.expires.map(|expires| expires.duration_since(Timestamp::now()));
            if let Some(Ok(left)) = left.map(std::time::Duration::try_from) {
                control.extend(&id, Span(left)).await?;
            }
            return Err(problem.into());
        }
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

pub(super) async fn timeout(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(Timeout { timeout }): Body<Timeout>,
) -> Result<StatusCode, Failure> {
    let sandbox = find(&door, &id).await?;
    if !is_running(&sandbox) {
        return Err(Failure::conflict(format!("sandbox `{id}` is paused: connect to it first")));
    }
    door.app.control.extend(&id, seconds(timeout)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn refresh(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(Refresh { duration }): Body<Refresh>,
) -> Result<StatusCode, Failure> {
    let sandbox = find(&door, &id).await?;
    if !is_running(&sandbox) {
        return Err(Failure::conflict(format!("sandbox `{id}` is paused: connect to it first")));
    }
    let duration = seconds(duration.unwrap_or(DEFAULT_TIMEOUT));
    // It keeps alive, and never ends sooner.
    if sandbox.expires.is_some_and(|expires| expires < Timestamp::now() + duration.0) {
        door.app.control.extend(&id, duration).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn kill(State(door): State<E2b>, Path(id): Path<String>) -> Result<StatusCode, Failure> {
    find(&door, &id).await?;
    door.app.control.destroy(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How long a paused sandbox is kept, as E2B's service does.
const PAUSED: Span = Span::from_secs(30 * 86_400);
