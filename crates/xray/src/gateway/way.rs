//! Where a connection of a sandbox may go, and the way there: out into the world, to a service of this machine that answers
//! in its place, or into another sandbox.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use backends::native::Running;
use control::Control;
use model::net::{Attempt, Decision, HOST, Policy, Verdict, sandbox};
use tokio::net::TcpStream;

use super::names::Lookup;
use super::outlet::Outlet;

/// What was decided about a connection.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) decision: Decision,
    /// Those that are allowed, or else those that were looked at.
    pub(super) exit: Exit,
    /// Its requests are looked at.
    pub(super) is_inspected: bool,
}

/// Whom a connection leads to. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Exit {
    /// Of hosts outside, or of this machine as `host`: tried one after the other.
    Addresses(Arc<[SocketAddr]>),
    /// A service of this machine, in place of the host.
    Service(SocketAddr),
    /// Another sandbox, by what its init makes for us inside.
    Sandbox { control: Control, running: Running, port: u16 },
    /// All of it is answered by the gateway.
    Nobody,
}

impl Way {
    fn denied(rule: String) -> Self {
        let decision = Decision { verdict: Verdict::Deny, rule };
        Self { decision, exit: Exit::Nobody, is_inspected: false }
    }

    /// The address that the record names. What is not outside has none.
    pub(super) fn first(&self) -> Option<IpAddr> {
        match &self.exit {
            Exit::Addresses(addresses) => addresses.first().map(SocketAddr::ip),
            Exit::Service(_) | Exit::Sandbox { .. } | Exit::Nobody => None,
        }
    }
}

impl Exit {
    pub(super) async fn dial(&self) -> io::Result<TcpStream> {
        match self {
            Self::Addresses(addresses) => dial(addresses).await,
            Self::Service(service) => dial(&[*service]).await,
            Self::Sandbox { control, running, port } => {
                let stream = control.connect(running, *port).await.map_err(io::Error::other)?;
                stream.set_nodelay(true)?;
                Ok(stream)
            }
            Self::Nobody => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn service(&self) -> Option<SocketAddr> {
        match self {
            Self::Service(service) => Some(*service),
            Self::Addresses(_) | Self::Sandbox { .. } | Self::Nobody => None,
        }
    }

    /// The address that was dialled, where it is one that was decided about.
    pub(super) fn reached(&self, outside: &TcpStream) -> Option<IpAddr> {
        match self {
            Self::Addresses(_) => outside.peer_addr().ok().map(|address| address.ip()),
            Self::Service(_) | Self::Sandbox { .. } | Self::Nobody => None,
        }
    }
}

/// Finds where a destination leads, and whether it may be reached. Exactly those addresses are dialled that are decided about:
/// what a name leads to a moment later does not matter.
pub(super) async fn find(outlet: &Outlet, name: Option<&str>, destination: SocketAddr) -> Way {
    let port = destination.port();
    let policy = outlet.policy();
    let address = if name.is_none() { Some(destination.ip()) } else { None };
    let attempt = Attempt { name, address, port };
    let decision = policy.decide(attempt);
    if decision.verdict == Verdict::Deny {
        let looked_at = address.map(|address| SocketAddr::new(address, port));
        let exit = Exit::Addresses(looked_at.into_iter().collect());
        return Way { decision, exit, is_inspected: false };
    }
    if !policy.goes_out(attempt) {
        let exit = policy.service(attempt).map_or(Exit::Nobody, Exit::Service);
        return Way { decision, exit, is_inspected: policy.inspects(attempt) };
    }
    if let Some(sandbox) = name.and_then(sandbox) {
        return match outlet.neighbour(sandbox).await {
            Ok((control, running)) => {
                let exit = Exit::Sandbox { control, running, port };
                Way { decision, exit, is_inspected: policy.inspects(attempt) }
            }
            Err(problem) => Way::denied(problem.detail),
        };
    }
    let way = out(outlet, &policy, name, destination).await;
    // Of a host that does not exist, that part is answered all the same which is answered here.
    if way.decision.verdict == Verdict::Deny && name.is_some_and(|name| policy.answers(name)) {
        return Way { decision, exit: Exit::Nobody, is_inspected: policy.inspects(attempt) };
    }
    way
}

/// The way to a host, by the addresses that it has now.
async fn out(outlet: &Outlet, policy: &Policy, name: Option<&str>, destination: SocketAddr) -> Way {
    let port = destination.port();
    let addresses = match name {
        None => vec![destination.ip()],
        Some(HOST) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Some(name) => match outlet.names().look_up(name).await {
            Lookup::Addresses(addresses) => addresses,
            Lookup::Nothing => return Way::denied(NOWHERE.to_owned()),
            Lookup::Failed(error) => {
                return Way::denied(format!("the name could not be looked up: {error}"));
            }
        },
    };
    let decide = |address: &IpAddr| decide(policy, Attempt { name, address: Some(*address), port });
    let decisions: Vec<Decision> = addresses.iter().map(decide).collect();
    let socket = |address: &IpAddr| SocketAddr::new(*address, port);
    let is_allowed = |decision: &Decision| decision.verdict == Verdict::Allow;
    let mut allowed =
        addresses.iter().zip(&decisions).filter(|(_, decision)| is_allowed(decision)).peekable();
    match (allowed.peek(), decisions.first()) {
        (Some((first, decision)), _) => Way {
            is_inspected: policy.inspects(Attempt { name, address: Some(**first), port }),
            decision: (*decision).clone(),
            exit: Exit::Addresses(allowed.map(|(address, _)| socket(address)).collect()),
        },
        (None, Some(decision)) => Way {
            decision: decision.clone(),
            exit: Exit::Addresses(addresses.iter().map(socket).collect()),
            is_inspected: false,
        },
        (None, None) => Way::denied(NOWHERE.to_owned()),
    }
}

/// As the policy says, which cannot know the addresses of this machine.
pub(super) fn decide(policy: &Policy, attempt: Attempt<'_>) -> Decision {
    let decision = policy.decide(attempt);
    let is_own = || {
        let is_dialled = attempt.name != Some(HOST) && policy.goes_out(attempt);
        is_dialled && attempt.address.is_some_and(is_own)
    };
    if decision.verdict == Verdict::Allow && is_own() { policy.decide_own(attempt) } else { decision }
}

/// Would this machine talk to itself? Whoever is its own peer needs no other address. No packet is sent.
fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let own = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, ANY_PORT))?;
        socket.local_addr()
    });
    // What cannot be routed cannot be dialled either.
    own.is_ok_and(|own| own.ip() == address)
}

/// Tries one after the other.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
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

const NOWHERE: &str = "the name leads nowhere";
/// Nothing is sent to it.
const ANY_PORT: u16 = 53;
/// Of a name with many addresses.
const ATTEMPTS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);
