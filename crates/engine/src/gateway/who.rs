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
    /// now, not to be seen, or among more than are looked through.
    pub fn connection(&self, inside: SocketAddr, outside: SocketAddr, init: i32) -> io::Result<Option<Who>> {
        let Some(inode) = self.inode(inside, outside)? else { return Ok(None) };
        Ok(Search::new(MOST).holder(init, &format!("socket:[{inode}]")).and_then(describe))
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

/// A walk through what a sandbox's processes hold, of so many steps: it can make as many of them as it likes.
struct Search {
    left: usize,
}

impl Search {
    fn new(steps: usize) -> Self {
        Self { left: steps }
    }

    /// Among the processes of a sandbox: all came from its init. By the kernel's lists of children, so that it does not matter how
    /// many others there are on the machine; a kernel without these lists is asked for everybody.
    fn holder(&mut self, init: i32, socket: &str) -> Option<i32> {
        let mut known = vec![init];
        let mut next = 0;
        while let Some(pid) = known.get(next).copied().filter(|_pid| self.left > 0) {
            next += 1;
            if self.holds(pid, socket) {
                return Some(pid);
            }
            match children(pid) {
                Ok(children) => known.extend(children.into_iter().take(self.left)),
                Err(_) if pid == init => {
                    known.extend(tree::family(init).into_iter().filter(|pid| *pid != init))
                }
                // It ended meanwhile, and its children are init's now, or ended, too.
                Err(_) => {}
            }
        }
        None
    }

    /// A process that ended meanwhile, or whose descriptors we may not see, holds nothing.
    fn holds(&mut self, pid: i32, socket: &str) -> bool {
        self.left = self.left.saturating_sub(1);
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        for entry in descriptors.take(self.left) {
            self.left -= 1;
            let link = entry.and_then(|entry| fs::read_link(entry.path()));
            if link.is_ok_and(|link| link.as_os_str().as_bytes() == socket.as_bytes()) {
                return true;
            }
        }
        false
    }
}

fn children(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    // Each thread has those that it made.
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.take(THREADS) {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(children)
}

fn describe(pid: i32) -> Option<Who> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    // The last number is the one of the innermost namespace.
    let inside = line("NSpid:")?.split_whitespace().last()?.parse().ok()?;
    Some(Who { pid: inside, name: line("Name:")?.trim().to_owned() })
}

const BY_FAMILY: u16 = 20;
/// Processes and descriptors that are looked at: some tens of milliseconds, and far more than any work has.
const MOST: usize = 1 << 14;
/// Of one process.
const THREADS: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_walk_through_many_descriptors_has_an_end() {
        let (held, _other) = UnixStream::pair().unwrap();
        let own = std::process::id() as i32;
        let socket = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).unwrap();
        let socket = socket.to_str().unwrap();
        assert_eq!(Search::new(MOST).holder(own, socket), Some(own));
        // Three of them are always there before it: the streams of this process.
        let mut short = Search::new(3);
        assert_eq!((short.holder(own, socket), short.left), (None, 0));
    }
}
