//! What goes to services in a sandbox: each request over a connection of its own, which init makes in the sandbox's network.
//!
//! Who reaches loopback reaches these ports, as E2B's are reached by everyone, unless the sandbox was made without public traffic. What
//! opens other doors (the API key, the tokens of sandboxes) does not go in.

mod forward;
mod head;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use model::{Code, Problem, Sandbox, SandboxId};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::E2b;
use super::failure::{Failure, sentence};
use super::labels::Noted;
use forward::ForwardError;
use head::Destination;

/// The connections that have become another protocol's. They are no requests any more, and counted here only.
#[derive(Clone, Debug)]
pub(super) struct Tunnels(Arc<Semaphore>);

impl Default for Tunnels {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TUNNELS)))
    }
}

/// Where not everybody may talk to a sandbox's ports, its traffic token is asked for.
pub(super) fn admit(door: &E2b, sandbox: &Sandbox, headers: &HeaderMap) -> Result<(), Failure> {
    if Noted::of(&sandbox.labels).is_none_or(|noted| noted.is_public()) {
        return Ok(());
    }
    let refused =
        |what| Failure::new(StatusCode::FORBIDDEN, format!("the header `{}` {what}", head::TRAFFIC_TOKEN));
    match headers.get(head::TRAFFIC_TOKEN) {
        Some(token) if door.keys.is_traffic_of(sandbox.id, token.as_bytes()) => Ok(()),
        Some(_) => Err(refused("is not this sandbox's traffic token")),
        None => Err(refused("is missing: the sandbox was made without public traffic")),
    }
}

/// Sends a request to a port of a sandbox that runs, and answers what is answered there.
pub(super) async fn pass(door: &E2b, sandbox: SandboxId, port: u16, request: Request) -> Response {
    let answered = async {
        let (stream, ended) = reach(door, sandbox, port).await?;
        let (mut parts, body) = request.into_parts();
        let upgrade = xray::hop::take_upgrade(&mut parts);
        head::inwards(&mut parts, Destination { sandbox, port }, &door.keys, upgrade.is_some());
        let request = Request::from_parts(parts, body);
        let upgrade = upgrade.map(|client| (client, door.tunnels.clone()));
        Ok::<_, NoAnswer>(forward::forward(stream, ended, request, upgrade, IDLE).await?)
    };
    answered.await.unwrap_or_else(|no_answer| no_answer.told(sandbox, port))
}

/// A connection to a port, and what returns when it has to end: with the sandbox's processes, or with the daemon.
async fn reach(
    door: &E2b,
    sandbox: SandboxId,
    port: u16,
) -> Result<(TcpStream, impl Future<Output = ()> + Send + use<>), NoAnswer> {
    let control = &door.app.control;
    let (_, running) = control.reachable(&sandbox.to_string()).await.map_err(NoAnswer::Unreachable)?;
    let stream = control.connect(&running, port).await.map_err(|problem| match problem.code {
        Code::NotReady => NoAnswer::NotOpen(problem),
        _ => NoAnswer::Unreachable(problem),
    })?;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection to a service is slower than it could be");
    }
    let stop = door.app.stop.clone();
    let ended = async move {
        tokio::select! {
            gone = running.gone() => {
                if let Err(error) = gone {
                    tracing::warn!(%sandbox, %error, "the end of a sandbox cannot be seen");
                }
            }
            () = stop.requested() => {}
        }
    };
    Ok((stream, ended))
}

/// Why a service did not answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("the sandbox's ports cannot be reached")]
    Unreachable(#[source] Problem),
    #[error("nobody listens")]
    NotOpen(#[source] Problem),
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// The clients look for these words.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    sandbox_id: String,
    message: String,
    port: u16,
    code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl NoAnswer {
    fn told(self, sandbox: SandboxId, port: u16) -> Response {
        let (status, message, detail) = match self {
            Self::Unreachable(problem) => return Failure::from(problem).into_response(),
            Self::NotOpen(problem) => {
                let message = "The sandbox is running but port is not open".to_owned();
                (StatusCode::BAD_GATEWAY, message, Some(sentence(&problem)))
            }
            Self::Forward(error) => {
                let status = match error {
                    ForwardError::Crowded => StatusCode::SERVICE_UNAVAILABLE,
                    ForwardError::Connect => StatusCode::METHOD_NOT_ALLOWED,
                    ForwardError::Handshake(_) | ForwardError::Ask(_) | ForwardError::Uncalled => {
                        StatusCode::BAD_GATEWAY
                    }
                };
                (status, error.to_string(), Some(sentence(&Problem::from_error(Code::NotReady, &error))))
            }
        };
        let told = Told { sandbox_id: sandbox.to_string(), message, port, code: status.as_u16(), detail };
        (status, Json(told)).into_response()
    }
}

/// At once, of all sandboxes.
const TUNNELS: usize = 2048;
/// A connection on which nothing passes for so long has ended.
const IDLE: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests;
