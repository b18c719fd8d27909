//! One TCP connection of a sandbox: where it wants to go, whether it may, and the way there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::net::{PROXY, Verdict};
use model::request::{End, Protocol, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::outlet::Outlet;
use super::proxy;
use super::relay::{self, First, Flow, Line};
use super::way::{Way, find};
use super::{dns, inspect};

/// Serves it to its end, and puts it on record.
pub(super) async fn serve(outlet: &Arc<Outlet>, inside: TcpStream, peer: SocketAddr) {
    // Without a record of its redirection it was made to us directly.
    let Ok(destination) = engine::gateway::destination(inside.as_fd(), peer) else { return reset(&inside) };
    if engine::gateway::is_direct(destination) {
        return reset(&inside);
    }
    let who = outlet.who(peer, destination);
    let name = outlet.named(destination.ip()).await;
    if destination.port() == DNS_PORT && name.is_none() {
        return answer_questions(outlet, inside).await;
    }
    if name.as_deref() == Some(PROXY) {
        return proxy::serve(outlet, inside, destination.port(), who.await).await;
    }
    let (who, way) = tokio::join!(who, find(outlet, name.as_deref(), destination));
    let request = outlet.request(Protocol::Tcp, name.as_deref(), way.first(), Some(destination.port()));
    let request =
        Request { process: who, verdict: way.decision.verdict, rule: way.decision.rule.clone(), ..request };
    go(outlet, inside, request, &way).await;
}

/// Goes there, if it may.
async fn go(outlet: &Arc<Outlet>, inside: TcpStream, request: Request, way: &Way) {
    let may = request.verdict == Verdict::Allow;
    let mut request = match outlet.recorder().begin(request).await {
        Ok(request) => request,
        // What is not on record does not happen.
        Err(problem) => {
            tracing::warn!(%problem, "a connection was refused because it could not be recorded");
            return reset(&inside);
        }
    };
    if !may {
        return reset(&inside);
    }
    let (began, flow) = (Instant::now(), Arc::new(Flow::default()));
    let error = if way.is_inspected {
        inspect::serve(outlet, &request, (Vec::new(), inside), way.exit.clone(), &flow).await
    } else {
        pass_on(outlet, &mut request, inside, way, &flow).await
    };
    finish(outlet, request, began, &flow, error).await;
}

/// Puts on record how it ended.
pub(super) async fn finish(
    outlet: &Outlet,
    mut request: Request,
    began: Instant,
    flow: &Flow,
    error: Option<relay::Stop>,
) {
    if let Some(relay::Stop::Denied(rule)) = &error {
        request.verdict = Verdict::Deny;
        request.rule.clone_from(rule);
    }
    let milliseconds = began.elapsed().as_millis() as u64;
    let (sent, received) = flow.counts();
    request.end = Some(End { sent, received, milliseconds, error: error.map(|stop| stop.to_string()) });
    outlet.recorder().rewrite(&request).await;
}

/// Passes on whatever it says.
async fn pass_on(
    outlet: &Arc<Outlet>,
    request: &mut Request,
    inside: TcpStream,
    way: &Way,
    flow: &Flow,
) -> Option<relay::Stop> {
    match way.exit.dial().await {
        Ok(outside) => {
            if let Err(error) = inside.set_nodelay(true) {
                tracing::debug!(%error, "small answers wait for each other");
            }
            request.address = way.exit.reached(&outside);
            let line = Line { inside, outside, first: First::Listen, service: way.exit.service() };
            relay::relay(outlet, request, line, flow).await
        }
        Err(error) => {
            reset(&inside);
            Some(relay::Stop::Failed(error))
        }
    }
}

/// The other side sees at once that nobody is there.
pub(crate) fn reset(stream: &TcpStream) {
    if let Err(error) = rustix::net::sockopt::set_socket_linger(stream.as_fd(), Some(Duration::ZERO)) {
        tracing::debug!(error = %io::Error::from(error), "a connection is closed instead of reset");
    }
}

/// Questions to a name server over TCP: each with its length before it.
async fn answer_questions(outlet: &Arc<Outlet>, mut inside: TcpStream) {
    let talk = async {
        for _ in 0..QUESTIONS {
            let length = inside.read_u16().await?;
            let mut question = vec![0; length.into()];
            inside.read_exact(&mut question).await?;
            let Some(answer) = dns::answer(outlet, &question).await else { break };
            let Ok(length) = u16::try_from(answer.len()) else { break };
            inside.write_u16(length).await?;
            inside.write_all(&answer).await?;
        }
        Ok::<_, io::Error>(())
    };
    match tokio::time::timeout(PATIENCE, talk).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!(%error, "questions over TCP ended"),
    }
}

const DNS_PORT: u16 = 53;
const PATIENCE: Duration = Duration::from_secs(10);
/// Over one connection.
const QUESTIONS: usize = 1000;
