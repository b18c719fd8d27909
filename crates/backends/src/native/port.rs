//! Connections into a running sandbox.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use engine::init::wire::Request;
use model::exec::{FrameHead, FrameKind};
use model::{Code, Problem};
use tokio::net::TcpStream;

use super::command::older;
use super::problem::NativeError;
use super::{Native, Running, talk};

impl Native {
    /// Connects to a port of a sandbox's own loopback. The socket is of the sandbox's network, and made by its init.
    pub async fn connect(&self, running: &Running, port: u16) -> Result<TcpStream, Problem> {
        let both = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let mut first = None;
        for address in both {
            let socket = match self.socket(running, SocketAddr::new(address, port)).await {
                Ok(socket) => socket,
                Err(problem) => {
                    first.get_or_insert(problem);
                    continue;
                }
            };
            match established(socket).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    let problem = Problem::from_error(Code::NotReady, &error);
                    first.get_or_insert(problem.hint(format!("does anything listen on port {port} inside?")));
                }
            }
        }
        Err(first.expect("both were tried"))
    }

    async fn socket(&self, running: &Running, to: SocketAddr) -> Result<OwnedFd, Problem> {
        let stream = talk::open(&self.folder(running).0, &Request::Connect { to }).await?;
        let stream = stream.into_std().map_err(NativeError::Talk)?;
        let received = tokio::task::spawn_blocking(move || {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            engine::init::receive(stream.as_fd())
        });
        let (said, descriptors) = received.await.map_err(NativeError::from)?.map_err(NativeError::Talk)?;
        descriptors.into_iter().next().ok_or_else(|| instead(&said))
    }
}

/// Init begins a connection and does not wait for it.
async fn established(socket: OwnedFd) -> std::io::Result<TcpStream> {
    let stream = TcpStream::from_std(socket.into())?;
    match tokio::time::timeout(PATIENCE, stream.writable()).await {
        Ok(writable) => writable?,
        Err(_elapsed) => return Err(std::io::ErrorKind::TimedOut.into()),
    }
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// What init said in place of a socket.
fn instead(said: &[u8]) -> Problem {
    let head = said.first_chunk::<{ FrameHead::SIZE }>().map(|head| FrameHead::decode(*head));
    let problem = match head {
        Some(Ok(FrameHead { kind: FrameKind::Problem, .. })) => talk::problem(&said[FrameHead::SIZE..]),
        _ => return Problem::new(Code::Internal, "the sandbox gave an answer that makes no sense"),
    };
    // Only one that does not know the question calls it a bad one.
    if problem.code == Code::BadRequest {
        return older("connect into it");
    }
    problem
}

const PATIENCE: Duration = Duration::from_secs(10);
