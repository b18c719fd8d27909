//! What the packet rules refused, as the kernel's log tells it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::netlink::{attributes, messages};

/// A packet that was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The number of the protocol on top of IP: 17 is UDP, 1 and 58 are ICMP.
    pub protocol: u8,
    pub address: IpAddr,
    /// Where the protocol has ports.
    pub port: Option<u16>,
}

/// Reads them from the socket in [`super::Sockets`].
#[derive(Debug)]
pub struct RefusedReader(OwnedFd);

impl RefusedReader {
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self(socket))
    }

    /// Those that wait, or [`io::ErrorKind::WouldBlock`]. What the kernel had no room for is not told.
    pub fn read(&self) -> io::Result<Vec<Refused>> {
        let mut buffer = vec![0; 64 << 10];
        match recv(&self.0, &mut buffer, RecvFlags::empty()) {
            Ok((length, _)) => Ok(parse(&buffer[..length])),
            // More came than there was room for; the rest is as good as any.
            Err(Errno::NOBUFS | Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsRawFd for RefusedReader {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn parse(bytes: &[u8]) -> Vec<Refused> {
    let packets = messages(bytes).filter(|message| message.kind == PACKET);
    // Four bytes of netfilter's own come first.
    let payloads = packets.flat_map(|message| attributes(message.payload.get(4..).unwrap_or_default()));
    payloads.filter(|(kind, _)| *kind == PAYLOAD).filter_map(|(_, packet)| destination(packet)).collect()
}

fn destination(packet: &[u8]) -> Option<Refused> {
    let (protocol, address, rest) = match packet.first()? >> 4 {
        4 => {
            let address: [u8; 4] = *packet.get(16..)?.first_chunk()?;
            let head = usize::from(packet[0] & 0xf) * 4;
            (*packet.get(9)?, IpAddr::from(Ipv4Addr::from(address)), packet.get(head..))
        }
        6 => {
            let address: [u8; 16] = *packet.get(24..)?.first_chunk()?;
            (*packet.get(6)?, IpAddr::from(Ipv6Addr::from(address)), packet.get(40..))
        }
        _ => return None,
    };
    let port = || Some(u16::from_be_bytes(*rest?.get(2..)?.first_chunk()?));
    Some(Refused { protocol, address, port: WITH_PORTS.contains(&protocol).then(port).flatten() })
}

const PACKET: u16 = 4 << 8;
const PAYLOAD: u16 = 9;
/// UDP, DCCP, SCTP, UDP-Lite: a destination port at the same place.
const WITH_PORTS: [u8; 4] = [17, 33, 132, 136];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn where_a_packet_was_to_go() {
        let mut udp = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 8, 8, 4, 4];
        udp.extend([0x12, 0x34, 0x01, 0xbb, 0, 8, 0, 0]);
        let address = "8.8.4.4".parse().unwrap();
        assert_eq!(destination(&udp), Some(Refused { protocol: 17, address, port: Some(443) }));
        udp[9] = 1;
        assert_eq!(destination(&udp), Some(Refused { protocol: 1, address, port: None }));
        let mut six = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        six.extend([0; 16]);
        six.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).octets());
        six.extend([0, 1, 0, 53, 0, 8, 0, 0]);
        let address = "2001:db8::7".parse().unwrap();
        assert_eq!(destination(&six), Some(Refused { protocol: 17, address, port: Some(53) }));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_survived(bytes: Vec<u8>) {
            destination(&bytes);
            prop_assert!(parse(&bytes).len() <= bytes.len());
        }
    }
}
