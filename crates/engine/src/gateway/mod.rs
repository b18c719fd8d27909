//! The sandbox's side of the gateway: a network namespace in which every address leads to a few sockets.
//!
//! Made by init before it gives up its rights ([`Gateway::wire`]): every address is local, every TCP connection that is not
//! to the sandbox's own loopback is redirected to one listener, every question to a name server to one socket, and all
//! else is refused and told. The sockets are handed to the daemon, which decides; init keeps its copies for the next
//! daemon. No byte of a connection passes through init, and while no daemon is there, connections wait.

mod netlink;
mod refused;
mod routes;
mod rules;
mod who;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub use refused::{Refused, RefusedReader};
pub use who::{Who, Whose};
pub(crate) use wire::Gateway;

use crate::sys;

/// The ports that connections and questions are redirected to. Above those the kernel gives out by itself.
const TCP_PORT: u16 = 61080;
const DNS_PORT: u16 = 61053;
/// The group of netfilter's log that refused packets are told to.
const LOG_GROUP: u16 = 7;

/// What the daemon is handed, all of the sandbox's own network namespace.
#[derive(Debug)]
pub struct Sockets {
    pub over_ipv4: Pair,
    /// Absent where the kernel has no IPv6.
    pub over_ipv6: Option<Pair>,
    /// Tells of packets that were refused: see [`RefusedReader`].
    pub refused: OwnedFd,
    /// Tells whose a connection is: see [`Whose`].
    pub diagnosis: OwnedFd,
}

/// Where connections and questions arrive.
#[derive(Debug)]
pub struct Pair {
    pub listener: OwnedFd,
    pub questions: OwnedFd,
}

impl Sockets {
    /// In the order in which they travel.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let pairs = [Some(&self.over_ipv4), self.over_ipv6.as_ref()].into_iter().flatten();
        let both = pairs.flat_map(|pair| [pair.listener.as_fd(), pair.questions.as_fd()]);
        [self.refused.as_fd(), self.diagnosis.as_fd()].into_iter().chain(both).collect()
    }

    /// Reads init's answer to [`crate::init::wire::Request::Gateway`]. What it says instead, if it has none, is an error.
    pub fn receive(conversation: BorrowedFd<'_>) -> io::Result<Self> {
        let packet = sys::receive_at_most(conversation, 4096)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Self::from_descriptors(packet.descriptors).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// None: they are not as many as there should be.
    fn from_descriptors(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut all = descriptors.into_iter();
        let (refused, diagnosis) = (all.next()?, all.next()?);
        let mut pair = || Some(Pair { listener: all.next()?, questions: all.next()? });
        let (over_ipv4, over_ipv6) = (pair()?, pair());
        Some(Self { over_ipv4, over_ipv6, refused, diagnosis })
    }
}

/// Where a connection that was redirected to a listener of ours was to go.
pub fn destination(connection: BorrowedFd<'_>, peer: SocketAddr) -> io::Result<SocketAddr> {
    Ok(match peer {
        SocketAddr::V4(_) => rustix::net::sockopt::ip_original_dst(connection)?.into(),
        SocketAddr::V6(_) => rustix::net::sockopt::ipv6_original_dst(connection)?.into(),
    })
}

/// Was the connection made to the listener itself, instead of to something it stands for?
#[must_use]
pub fn is_direct(destination: SocketAddr) -> bool {
    destination.ip().is_loopback() && destination.port() == TCP_PORT
}
