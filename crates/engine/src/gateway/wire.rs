//! Making the namespace of a sandbox lead to the gateway, from inside, while init still may.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::{NETFILTER, SOCK_DIAG};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::{DNS_PORT, Pair, Sockets, TCP_PORT, netlink, routes, rules};
use crate::launcher::LaunchError;

/// What init keeps of it.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) sockets: Sockets,
}

impl Gateway {
    /// Loopback is up already.
    pub(crate) fn wire() -> Result<Self, LaunchError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |e: io::Error| LaunchError::new(what, e)
        };
        routes::make_everything_local(FAMILY_IPV4).map_err(failed("make every address local"))?;
        let over_ipv4 = pair(Ipv4Addr::LOCALHOST.into()).map_err(failed("listen for connections"))?;
        let over_ipv6 = match pair(Ipv6Addr::LOCALHOST.into()) {
            Ok(pair) => {
                routes::make_everything_local(FAMILY_IPV6)
                    .map_err(failed("make every IPv6 address local"))?;
                Some(pair)
            }
            // A machine without IPv6: nothing can leave that way.
            Err(error) if is_without_ipv6(&error) => None,
            Err(error) => return Err(LaunchError::new("listen for connections over IPv6", error)),
        };
        rules::install()
            .map_err(failed("install the packet rules (nf_tables with nat, redirect, log and reject)"))?;
        let refused = netlink::open(Some(NETFILTER)).map_err(failed("open the log of refused packets"))?;
        rules::hear_log(&refused).map_err(failed("read the log of refused packets"))?;
        let diagnosis = netlink::open(Some(SOCK_DIAG)).map_err(failed("open socket diagnosis"))?;
        Ok(Self { sockets: Sockets { over_ipv4, over_ipv6, refused, diagnosis } })
    }
}

/// Nothing arrives at these but what the rules redirect, and what is sent to loopback itself.
fn pair(address: std::net::IpAddr) -> io::Result<Pair> {
    let listener = bound(SocketType::STREAM, SocketAddr::new(address, TCP_PORT))?;
    listen(&listener, BACKLOG)?;
    Ok(Pair { listener, questions: bound(SocketType::DGRAM, SocketAddr::new(address, DNS_PORT))? })
}

fn bound(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if kind == SocketType::STREAM {
        // Connections that linger after a command must not keep the next init from this port.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &address)?;
    Ok(socket)
}

fn is_without_ipv6(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL].into_iter().any(|without| code == Some(without))
}

const FAMILY_IPV4: u8 = libc::AF_INET as u8;
const FAMILY_IPV6: u8 = libc::AF_INET6 as u8;
/// Connections that wait for the daemon, for as long as it may take to start anew.
const BACKLOG: i32 = 1024;
