//! Bytes from inside to outside and back, for as long as the policy allows it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::net::{Attempt, Policy, Verdict, is_ours};
use model::request::Request;
use tokio::net::TcpStream;

use super::connection::reset;
use super::opening::{self, LONGEST, Opening};
use super::outlet::Outlet;
use super::pass::{BUFFER, end, pass, receive, send};
use super::way;

/// What has passed.
#[derive(Debug, Default)]
pub(super) struct Flow {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Flow {
    pub(super) fn count_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }
}

/// Why a connection did not end by itself.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(io::Error),
    /// Before the server knew what is wanted.
    Denied(String),
    Cut(Cut),
}

/// Why it was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    NotAllowed,
    /// Its requests are looked at from now on, or answered by another.
    OtherWay,
    /// The sandbox ended.
    Gone,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Denied(rule) => f.write_str(rule),
            Self::Cut(cut) => cut.fmt(f),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAllowed => "cut: it is not allowed any more",
            Self::OtherWay => "cut: it would go another way now",
            Self::Gone => "cut: its sandbox ended",
        })
    }
}

/// What is still to be heard of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// It has said nothing yet.
    Listen,
    /// It said whom it speaks to, and that was passed on: what comes is the rest of it.
    Heard,
}

/// A connection from one side to the other.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) inside: TcpStream,
    pub(super) outside: TcpStream,
    pub(super) first: First,
    /// What answers in place of the host.
    pub(super) service: Option<SocketAddr>,
}

/// Passes bytes on until both sides have ended. `None`: they did so by themselves.
pub(super) async fn relay(outlet: &Arc<Outlet>, request: &Request, line: Line, flow: &Flow) -> Option<Stop> {
    let Line { inside, outside, first, service } = line;
    let said = OnceLock::new();
    let up = async {
        let goes_on = match first {
            // What answers in place of a host goes by any name.
            First::Listen if service.is_some() => true,
            First::Listen => hear_first(outlet, request, (&inside, &outside), &said, &flow.sent).await?,
            First::Heard => true,
        };
        if goes_on {
            pass(outlet.room(), &inside, &outside, &flow.sent).await.map_err(Stop::Failed)?;
        }
        end(&outside).map_err(Stop::Failed)
    };
    // Not kept waiting for the first: in many protocols the server speaks first.
    let down = async {
        pass(outlet.room(), &outside, &inside, &flow.received).await.map_err(Stop::Failed)?;
        end(&inside).map_err(Stop::Failed)
    };
    let both = async { tokio::try_join!(up, down).map(drop) };
    let cut = outlet.cut(|policy| {
        let contradicts = |said: &String| contradicts(policy, request, said).is_some();
        let attempt = attempt(request);
        if way::decide(policy, attempt).verdict == Verdict::Deny || said.get().is_some_and(contradicts) {
            return Some(Cut::NotAllowed);
        }
        // Whoever connects again finds the way it goes now.
        let is_other = policy.inspects(attempt) || policy.service(attempt) != service;
        is_other.then_some(Cut::OtherWay)
    });
    let ended = tokio::select! {
        ended = both => ended,
        cut = cut => Err(Stop::Cut(cut)),
    };
    let stop = ended.err()?;
    reset(&inside);
    reset(&outside);
    Some(stop)
}

/// Passes on what a client begins with, as soon as it is clear whom it speaks to. `false`: it had no more to say.
async fn hear_first(
    outlet: &Arc<Outlet>,
    request: &Request,
    (from, to): (&TcpStream, &TcpStream),
    said: &OnceLock<String>,
    count: &AtomicU64,
) -> Result<bool, Stop> {
    // This machine and the sandboxes on it go by many names.
    if request.name.as_deref().is_some_and(is_ours) {
        return Ok(true);
    }
    let late = || Stop::Denied("it does not say in time whom it speaks to".to_owned());
    let (mut heard, mut passed) = (Vec::new(), 0);
    let mut buffer = vec![0; BUFFER];
    loop {
        let received = receive(from, &mut buffer);
        let length = if heard.len() == passed {
            received.await
        } else {
            tokio::time::timeout(PATIENCE, received).await.map_err(|_elapsed| late())?
        };
        let length = length.map_err(Stop::Failed)?;
        if length == 0 {
            return if heard.len() == passed { Ok(false) } else { Err(late()) };
        }
        heard.extend_from_slice(&buffer[..length]);
        let opening = opening::read(&heard);
        // Known before the policy is asked: whatever changes later finds it.
        if let Opening::For(name) = &opening {
            said.get_or_init(|| name.clone());
        }
        if let Some(rule) = contradiction(&outlet.policy(), request, &opening) {
            return Err(Stop::Denied(rule));
        }
        match opening {
            Opening::Unknown | Opening::Unfinished if heard.len() >= LONGEST => return Err(late()),
            Opening::Unfinished => {}
            Opening::Unknown | Opening::Silent | Opening::For(_) | Opening::Unclear => {
                send(to, &heard[passed..]).await.map_err(Stop::Failed)?;
                count.fetch_add((heard.len() - passed) as u64, Ordering::Relaxed);
                passed = heard.len();
            }
        }
        if !matches!(opening, Opening::Unknown | Opening::Unfinished) {
            return Ok(true);
        }
    }
}

/// What a connection says of itself must be what was decided about, or be allowed, too, and as it is.
pub(super) fn contradiction(policy: &Policy, request: &Request, opening: &Opening) -> Option<String> {
    match opening {
        Opening::For(said) => contradicts(policy, request, said),
        Opening::Unclear => Some("it does not say clearly whom it speaks to".to_owned()),
        Opening::Unknown | Opening::Unfinished | Opening::Silent => None,
    }
}

fn contradicts(policy: &Policy, request: &Request, said: &str) -> Option<String> {
    // An address is no name of anybody: it was decided about as what it is.
    let is_address = |address: IpAddr| request.name.is_none() && request.address == Some(address);
    if said.parse().is_ok_and(is_address) {
        return None;
    }
    let port = request.port.unwrap_or_default();
    let attempt = Attempt { name: Some(said), address: request.address, port };
    let (begin, denied) = match &request.name {
        Some(name) if name == said => return None,
        Some(name) => {
            let is_denied = policy.decide(attempt).verdict == Verdict::Deny;
            let begin = format!("it was to reach `{name}` and says `{said}`");
            (begin, is_denied.then(|| "which is not allowed".to_owned()))
        }
        None => {
            let denied = policy.denies(said, port).map(|rule| format!("which is denied by {rule}"));
            (format!("it says `{said}`"), denied)
        }
    };
    // Methods and paths of that host, and what answers in its place, would be passed by.
    let otherwise = || {
        let is_other = policy.inspects(Attempt { address: None, ..attempt }) || policy.answers(said);
        let is_name = said.parse::<IpAddr>().is_err();
        (is_other && is_name).then(|| "whose requests are looked at: reach it by its name".to_owned())
    };
    denied.or_else(otherwise).map(|why| format!("{begin}, {why}"))
}

/// Where a request was to go.
pub(super) fn attempt(request: &Request) -> Attempt<'_> {
    Attempt {
        name: request.name.as_deref(),
        address: request.address,
        port: request.port.unwrap_or_default(),
    }
}

/// From one piece of an opening to the next.
const PATIENCE: Duration = Duration::from_secs(2);
