//! Whose a connection is: the process inside that made it.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::netlink::{Batch, messages};
use crate::tree;

/// A process, as it is known inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    pub pid: u32,
    pub name: String,
}

/// Asks the kernel, through the socket in [`super::Sockets`].
#[derive(Debug)]
pub struct Whose(OwnedFd);

impl Whose {
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Who holds the sandbox's end of a TCP connection, among the processes below `init` (its pid out here). `None`: gone by
    /// now, or not to be seen.
    pub fn connection(&self, inside: SocketAddr, outside: SocketAddr, init: i32) -> io::Result<Option<Who>> {
        let Some(inode) = self.inode(inside, outside)? else { return Ok(None) };
        let socket = format!("socket:[{inode}]");
        Ok(below(init).into_iter().find(|pid| holds(*pid, &socket)).and_then(describe))
    }

    fn inode(&self, inside: SocketAddr, outside: SocketAddr) -> io::Result<Option<u32>> {
        let mut batch = Batch::default();
        batch.message(BY_FAMILY, 0, |body| {
            let family = if inside.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
            // Family, protocol, extensions, padding; all states; then the connection as its owner sees it.
            body.raw(&[family as u8, libc::IPPROTO_TCP as u8, 0, 0]).raw(&u32::MAX.to_ne_bytes());
            body.raw(&inside.port().to_be_bytes()).raw(&outside.port().to_be_bytes());
            body.raw(&padded(inside.ip())).raw(&padded(outside.ip()));
            // Any device, any cookie.
            body.raw(&[0; 4]).raw(&[0xff; 8]);
        });
        send(&self.0, batch.bytes(), SendFlags::NOSIGNAL)?;
        let mut buffer = [0; 4096];
        match recv(&self.0, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => {
                let found = messages(&buffer[..length]).find(|message| message.kind == BY_FAMILY);
                let inode = found
                    .and_then(|message| Some(u32::from_ne_bytes(*message.payload.get(68..)?.first_chunk()?)));
                Ok(inode.filter(|inode| *inode != 0))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn padded(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// The processes of a sandbox: all came from its init. By the kernel's lists of children, so that it does not matter how many
/// others there are on the machine; a kernel without these lists is asked for everybody.
fn below(init: i32) -> Vec<i32> {
    let mut found = vec![init];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        match children(pid) {
            Ok(children) => found.extend(children),
            Err(_) if pid == init => return tree::family(init),
            // It ended meanwhile, and its children are init's now, or ended, too.
            Err(_) => {}
        }
    }
    found
}

fn children(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    // Each thread has those that it made.
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(children)
}

/// A process that ended meanwhile, or whose descriptors we may not see, holds nothing.
fn holds(pid: i32, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.as_os_str().as_bytes() == socket.as_bytes())
}

fn describe(pid: i32) -> Option<Who> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    // The last number is the one of the innermost namespace.
    let inside = line("NSpid:")?.split_whitespace().last()?.parse().ok()?;
    Some(Who { pid: inside, name: line("Name:")?.trim().to_owned() })
}

const BY_FAMILY: u16 = 20;
