//! Connections to the sandbox's own loopback, made for the daemon, which is in another network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

/// Begins a connection. Whoever is handed the socket waits for its end: init waits for nobody.
pub(super) fn begin(to: SocketAddr) -> io::Result<OwnedFd> {
    // Anything else leads to the gateway, whose decisions are about what the workload wants and not the daemon.
    if !to.ip().is_loopback() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}
