//! The gateway as an HTTP proxy, for tools that insist on one: `http://zeno.proxy:3128`, a name that exists only inside.
//!
//! What is asked of it is decided by the same policy, by name and port, as a connection that is made directly, and recorded as
//! one. A tunnel leads to exactly what was decided about; what is said in it is looked at as ever.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::net::{PROXY, PROXY_PORT, Verdict};
use model::request::{Process, Protocol, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ask::{Ask, BadAsk, Kind};
use super::connection::{self, reset};
use super::inspect;
use super::outlet::Outlet;
use super::relay::{self, First, Flow, Line, Stop};
use super::way::{Exit, find};

/// Serves one connection to the proxy: one request, or one tunnel.
pub(super) async fn serve(outlet: &Arc<Outlet>, mut inside: TcpStream, port: u16, who: Option<Process>) {
    let record = async |who, rule: &str| {
        let request = outlet.request(Protocol::Tcp, Some(PROXY), None, Some(port));
        outlet.record_denied(Request { process: who, rule: rule.to_owned(), ..request }).await;
    };
    if port != PROXY_PORT {
        record(who, &format!("the proxy is at port {PROXY_PORT} only")).await;
        return reset(&inside);
    }
    let head = match tokio::time::timeout(PATIENCE, hear(&mut inside)).await {
        Ok(Ok(head)) => head,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request to the proxy ended early");
            record(who, "nothing whole was asked of the proxy").await;
            return reset(&inside);
        }
        Err(_elapsed) => {
            record(who, "nothing was asked of the proxy in time").await;
            return reset(&inside);
        }
    };
    match Ask::read(&head) {
        Ok(ask) => go(outlet, inside, ask, who).await,
        Err(bad) => {
            record(who, &bad.to_string()).await;
            refuse(inside, bad.status(), &bad.to_string()).await;
        }
    }
}

/// All that the client has said when the end of its head has come.
async fn hear(inside: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut said = Vec::new();
    let mut buffer = vec![0; 4096];
    while said.len() < LONGEST && !said.windows(4).any(|end| end == b"\r\n\r\n") {
        match inside.read(&mut buffer).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => said.extend_from_slice(&buffer[..length]),
        }
    }
    Ok(said)
}

async fn go(outlet: &Arc<Outlet>, inside: TcpStream, ask: Ask, who: Option<Process>) {
    let address: Option<IpAddr> = ask.host.parse().ok();
    let name = if address.is_none() { Some(ask.host.as_str()) } else { None };
    // Of a name only the port counts.
    let destination = SocketAddr::new(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), ask.port);
    let way = find(outlet, name, destination).await;
    let request = outlet.request(Protocol::Tcp, name, way.first(), Some(ask.port));
    let request =
        Request { process: who, verdict: way.decision.verdict, rule: way.decision.rule.clone(), ..request };
    let mut request = match outlet.recorder().begin(request).await {
        Ok(request) => request,
        // What is not on record does not happen.
        Err(problem) => {
            tracing::warn!(%problem, "a connection was refused because it could not be recorded");
            return reset(&inside);
        }
    };
    if request.verdict == Verdict::Deny {
        return refuse(inside, "403 Forbidden", &request.rule).await;
    }
    let (began, flow) = (Instant::now(), Arc::new(Flow::default()));
    let stop = if way.is_inspected {
        look_at(outlet, &request, inside, ask, way.exit, &flow).await
    } else {
        lead(outlet, &mut request, inside, &ask, &way.exit, &flow).await
    };
    connection::finish(outlet, request, began, &flow, stop).await;
}

/// Its requests are looked at, as on a connection that was made directly.
async fn look_at(
    outlet: &Arc<Outlet>,
    request: &Request,
    mut inside: TcpStream,
    ask: Ask,
    exit: Exit,
    flow: &Arc<Flow>,
) -> Option<Stop> {
    let heard = match ask.kind {
        Kind::Once { head } => head,
        Kind::Tunnel => match inside.write_all(ESTABLISHED).await {
            Ok(()) => Vec::new(),
            Err(error) => return Some(Stop::Failed(error)),
        },
    };
    inspect::serve(outlet, request, (heard, inside), exit, flow).await
}

async fn lead(
    outlet: &Arc<Outlet>,
    request: &mut Request,
    mut inside: TcpStream,
    ask: &Ask,
    exit: &Exit,
    flow: &Flow,
) -> Option<Stop> {
    match exit.dial().await {
        Ok(mut outside) => {
            request.address = exit.reached(&outside);
            match open(&mut inside, &mut outside, ask, flow).await {
                Ok(first) => {
                    let line = Line { inside, outside, first, service: exit.service() };
                    relay::relay(outlet, request, line, flow).await
                }
                Err(error) => Some(Stop::Failed(error)),
            }
        }
        Err(error) => {
            refuse(inside, "502 Bad Gateway", &error.to_string()).await;
            Some(Stop::Failed(error))
        }
    }
}

/// Tells whoever waits for it that the way is open. What comes after a request is its body, and may begin with anything.
async fn open(
    inside: &mut TcpStream,
    outside: &mut TcpStream,
    ask: &Ask,
    flow: &Flow,
) -> std::io::Result<First> {
    match &ask.kind {
        Kind::Tunnel => {
            inside.write_all(ESTABLISHED).await?;
            Ok(First::Listen)
        }
        Kind::Once { head } => {
            outside.write_all(head).await?;
            flow.count_sent(head.len());
            Ok(First::Heard)
        }
    }
}

async fn refuse(mut inside: TcpStream, status: &str, why: &str) {
    let body = format!("zeno: {why}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let said = async {
        inside.write_all((head + &body).as_bytes()).await?;
        inside.shutdown().await
    };
    if let Err(error) = said.await {
        tracing::debug!(%error, "a refusal was not read");
    }
}

impl BadAsk {
    fn status(&self) -> &'static str {
        match self {
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::NoHttp | Self::NotForProxy | Self::Host | Self::Early => "400 Bad Request",
        }
    }
}

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const LONGEST: usize = 32 << 10;
