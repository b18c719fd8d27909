//! One request over one connection: bodies are passed on as they come, and what both sides agree to make of the connection is, too.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use hyper::client::conn::http1::{self, Connection};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Tunnels;
use super::pulse::{Felt, Pulse};

/// Two ends of what is no HTTP any more.
struct Tunnel {
    client: OnUpgrade,
    service: OnUpgrade,
    _room: OwnedSemaphorePermit,
}

/// `upgrade`: the client's end, where it asks for another protocol. `ended` cuts everything, and so does `idle`.
pub(super) async fn forward<S, E>(
    stream: S,
    ended: E,
    request: axum::extract::Request,
    upgrade: Option<(OnUpgrade, Tunnels)>,
    idle: Duration,
) -> Result<Response, ForwardError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Future<Output = ()> + Send + 'static,
{
    if request.method() == Method::CONNECT {
        return Err(ForwardError::Connect);
    }
    let client = match upgrade {
        None => None,
        Some((client, Tunnels(room))) => match room.try_acquire_owned() {
            Ok(room) => Some((client, room)),
            Err(full) => {
                tracing::warn!(error = &full as &dyn std::error::Error, "no room for another tunnel");
                return Err(ForwardError::Crowded);
            }
        },
    };
    let pulse = Pulse::new();
    let handshake = http1::handshake::<_, Body>(TokioIo::new(Felt::new(stream, &pulse)));
    let (mut service, connection) = handshake.await.map_err(ForwardError::Handshake)?;
    let (lead, led) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            () = go_on(connection, led) => {}
            () = ended => {}
            () = pulse.stopped(idle) => tracing::debug!("nothing passed on a connection to a service for too long"),
        }
    });
    let mut response = service.send_request(request).await.map_err(ForwardError::Ask)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        xray::hop::strip(response.headers_mut(), false);
        return Ok(response.map(Body::new));
    }
    let Some((client, room)) = client else { return Err(ForwardError::Uncalled) };
    let tunnel = Tunnel { client, service: hyper::upgrade::on(&mut response), _room: room };
    if lead.send(tunnel).is_err() {
        tracing::debug!("a connection ended as it became a tunnel");
    }
    xray::hop::strip(response.headers_mut(), true);
    Ok(response.map(|_none| Body::empty()))
}

/// The connection to its end, and the tunnel that it became.
async fn go_on<S>(connection: Connection<TokioIo<Felt<S>>, Body>, led: oneshot::Receiver<Tunnel>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    crate::best_effort("talk to a service", connection.with_upgrades().await);
    // Nobody leads a request that remains one.
    let Ok(tunnel) = led.await else { return };
    match tokio::time::timeout(SWITCH, ends(tunnel.client, tunnel.service)).await {
        Ok(Ok((client, service))) => {
            let (mut client, mut service) = (TokioIo::new(client), TokioIo::new(service));
            crate::best_effort(
                "pass on what is no HTTP any more",
                tokio::io::copy_bidirectional(&mut client, &mut service).await,
            );
        }
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not become a tunnel"),
        Err(_late) => tracing::debug!("a connection did not become a tunnel in time"),
    }
}

async fn ends(client: OnUpgrade, service: OnUpgrade) -> Result<(Upgraded, Upgraded), hyper::Error> {
    Ok((client.await?, service.await?))
}

/// Why there is no answer. Each is a sentence that is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForwardError {
    #[error("A port of a sandbox is no proxy")]
    Connect,
    #[error("Too many connections to sandboxes have become WebSockets or the like")]
    Crowded,
    #[error("The service did not take the connection")]
    Handshake(#[source] hyper::Error),
    #[error("The service did not answer")]
    Ask(#[source] hyper::Error),
    #[error("The service answered with another protocol than it was asked in")]
    Uncalled,
}

/// From the answer that agrees to another protocol to both ends of it.
const SWITCH: Duration = Duration::from_secs(10);
