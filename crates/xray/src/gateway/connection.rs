//! One TCP connection of a sandbox: where it wants to go, whether it may, and the way there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::net::{Attempt, Decision, HOST, PROXY, Policy, Verdict};
use model::request::{End, Protocol, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::names::Lookup;
use super::outlet::Outlet;
use super::proxy;
use super::relay::{self, Flow};
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

/// Where a connection may go.
pub(super) struct Way {
    pub(super) decision: Decision,
    /// Those that are allowed, or else those that were looked at.
    pub(super) addresses: Vec<SocketAddr>,
    /// Its requests are looked at.
    pub(super) is_inspected: bool,
}

impl Way {
    pub(super) fn first(&self) -> Option<IpAddr> {
        self.addresses.first().map(SocketAddr::ip)
    }
}

/// Finds the addresses of a destination, and which of them may be reached. Exactly those are dialled: what a name leads to a
/// moment later does not matter.
pub(super) async fn find(outlet: &Outlet, name: Option<&str>, destination: SocketAddr) -> Way {
    let port = destination.port();
    let policy = outlet.policy();
    let denied = |rule: &str| Way {
        decision: Decision { verdict: Verdict::Deny, rule: rule.to_owned() },
        addresses: Vec::new(),
        is_inspected: false,
    };
    let addresses = match name {
        None => vec![destination.ip()],
        Some(HOST) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Some(name) => {
            let decision = policy.decide(Attempt { name: Some(name), address: None, port });
            if decision.verdict == Verdict::Deny {
                return Way { decision, addresses: Vec::new(), is_inspected: false };
            }
            match outlet.names().look_up(name).await {
                Lookup::Addresses(addresses) => addresses,
                Lookup::Nothing => return denied("the name leads nowhere"),
                Lookup::Failed(error) => return denied(&format!("the name could not be looked up: {error}")),
            }
        }
    };
    let decide = |address: &IpAddr| decide(&policy, Attempt { name, address: Some(*address), port });
    let decisions: Vec<Decision> = addresses.iter().map(decide).collect();
    let socket = |address: &IpAddr| SocketAddr::new(*address, port);
    let allowed = addresses.iter().zip(&decisions).filter(|(_, decision)| decision.verdict == Verdict::Allow);
    let allowed: Vec<(SocketAddr, Decision)> =
        allowed.map(|(address, decision)| (socket(address), decision.clone())).collect();
    match (allowed.first(), decisions.first()) {
        (Some((first, decision)), _) => Way {
            is_inspected: policy.inspects(Attempt { name, address: Some(first.ip()), port }),
            decision: decision.clone(),
            addresses: allowed.iter().map(|(address, _)| *address).collect(),
        },
        (None, Some(decision)) => Way {
            decision: decision.clone(),
            addresses: addresses.iter().map(socket).collect(),
            is_inspected: false,
        },
        (None, None) => denied("the name leads nowhere"),
    }
}

/// As the policy says, which cannot know the addresses of this machine.
pub(super) fn decide(policy: &Policy, attempt: Attempt<'_>) -> Decision {
    let decision = policy.decide(attempt);
    let is_own = || attempt.name != Some(HOST) && attempt.address.is_some_and(is_own);
    if decision.verdict == Verdict::Allow && is_own() { policy.decide_own(attempt) } else { decision }
}

/// Would this machine talk to itself? Whoever is its own peer needs no other address. No packet is sent.
fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let own = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, DNS_PORT))?;
        socket.local_addr()
    });
    // What cannot be routed cannot be dialled either.
    own.is_ok_and(|own| own.ip() == address)
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
        inspect::serve(outlet, &request, (Vec::new(), inside), way.addresses.clone(), &flow).await
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
    match dial(&way.addresses).await {
        Ok(outside) => {
            if let Err(error) = inside.set_nodelay(true) {
                tracing::debug!(%error, "small answers wait for each other");
            }
            request.address = outside.peer_addr().ok().map(|address| address.ip());
            relay::relay(outlet, request, inside, outside, flow).await
        }
        Err(error) => {
            reset(&inside);
            Some(relay::Stop::Failed(error))
        }
    }
}

/// Tries one after the other.
pub(super) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses.iter().take(ATTEMPTS) {
        match tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_elapsed) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
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
/// Of a name with many addresses.
const ATTEMPTS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);
/// Over one connection.
const QUESTIONS: usize = 1000;
