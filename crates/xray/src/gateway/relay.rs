//! Bytes from inside to outside and back, for as long as the policy allows it.
//!
//! What comes in quantity passes through a pipe within the kernel, and is copied nowhere.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::net::{Attempt, HOST, Policy, Verdict};
use model::request::Request;
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{self, reset};
use super::opening::{self, LONGEST, Opening};
use super::outlet::Outlet;
use super::room::Room;

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
    /// The policy changed.
    Cut,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Denied(rule) => f.write_str(rule),
            Self::Cut => f.write_str("cut: it is not allowed any more"),
        }
    }
}

/// Passes bytes on until both sides have ended. `None`: they did so by themselves.
pub(super) async fn relay(
    outlet: &Arc<Outlet>,
    request: &Request,
    inside: TcpStream,
    outside: TcpStream,
    flow: &Flow,
) -> Option<Stop> {
    let up = async {
        if hear_first(outlet, request, (&inside, &outside), &flow.sent).await? {
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
    let ended = tokio::select! {
        ended = both => ended,
        () = not_allowed_any_more(outlet, request) => Err(Stop::Cut),
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
    count: &AtomicU64,
) -> Result<bool, Stop> {
    // This machine goes by many names.
    if request.name.as_deref() == Some(HOST) {
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

/// What a connection says of itself must be what was decided about, or be allowed, too.
fn contradiction(policy: &Policy, request: &Request, opening: &Opening) -> Option<String> {
    let said = match opening {
        Opening::For(said) => said,
        Opening::Unclear => return Some("it does not say clearly whom it speaks to".to_owned()),
        Opening::Unknown | Opening::Unfinished | Opening::Silent => return None,
    };
    let port = request.port.unwrap_or_default();
    match &request.name {
        Some(name) if name == said => None,
        Some(name) => {
            let decision = policy.decide(Attempt { name: Some(said), address: request.address, port });
            let rule = format!("it was to reach `{name}` and says `{said}`, which is not allowed");
            (decision.verdict == Verdict::Deny).then_some(rule)
        }
        None => policy.denies(said, port).map(|rule| format!("it says `{said}`, which is denied by {rule}")),
    }
}

pub(super) async fn not_allowed_any_more(outlet: &Arc<Outlet>, request: &Request) {
    let mut changes = outlet.changes();
    let attempt = |request: &Request| -> bool {
        let policy = outlet.policy();
        let name = request.name.as_deref();
        let attempt = Attempt { name, address: request.address, port: request.port.unwrap_or_default() };
        connection::decide(&policy, attempt).verdict == Verdict::Allow
    };
    while attempt(request) {
        if changes.changed().await.is_err() {
            // The sandbox is going, and its connections with it.
            return std::future::pending().await;
        }
    }
}

async fn pass(room: &Room, from: &TcpStream, to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = receive(from, &mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        send(to, &buffer[..length]).await?;
        count.fetch_add(length as u64, Ordering::Relaxed);
        if length == buffer.len()
            && let Some(pipe) = Pipe::new(room)
        {
            drop(buffer);
            return pipe.pass(from, to, count).await;
        }
    }
}

/// A way from one socket to another that leaves the bytes where they are.
struct Pipe {
    entrance: OwnedFd,
    exit: OwnedFd,
    _room: OwnedSemaphorePermit,
}

impl Pipe {
    /// `None`: there are too many descriptors already, and bytes are copied instead.
    fn new(room: &Room) -> Option<Self> {
        let room = room.for_pipe()?;
        let (exit, entrance) = match pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) {
            Ok(ends) => ends,
            Err(errno) => {
                tracing::debug!(error = %io::Error::from(errno), "bytes are copied for lack of a pipe");
                return None;
            }
        };
        // Beyond what one user may have it stays as it is made.
        if let Err(errno) = fcntl_setpipe_size(&entrance, PIPE) {
            tracing::trace!(error = %io::Error::from(errno), "a pipe is small");
        }
        Some(Self { entrance, exit, _room: room })
    }

    async fn pass(&self, from: &TcpStream, to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
        loop {
            // The pipe is empty, so that whoever would block is the socket.
            let fill = || moved(splice(from.as_fd(), None, &self.entrance, None, PIPE, NOW));
            let mut left = from.async_io(Interest::READABLE, fill).await?;
            if left == 0 {
                return Ok(());
            }
            while left > 0 {
                let drain = || moved(splice(&self.exit, None, to.as_fd(), None, left, NOW));
                let length = to.async_io(Interest::WRITABLE, drain).await?;
                count.fetch_add(length as u64, Ordering::Relaxed);
                left -= length;
            }
        }
    }
}

fn moved(result: Result<usize, Errno>) -> io::Result<usize> {
    result.map_err(io::Error::from)
}

async fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    from.async_io(Interest::READABLE, || from.try_read(buffer)).await
}

async fn send(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let length = to.async_io(Interest::WRITABLE, || to.try_write(bytes)).await?;
        bytes = &bytes[length..];
    }
    Ok(())
}

/// Nothing more will come this way.
fn end(to: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(to.as_fd(), Shutdown::Write) {
        // The other side was faster.
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

const BUFFER: usize = 16 << 10;
/// From one piece of an opening to the next.
const PATIENCE: Duration = Duration::from_secs(2);
const PIPE: usize = 1 << 20;
const NOW: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);
