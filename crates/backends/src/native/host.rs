//! What runs on the real machine and is not in the copy.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::sandbox::Listener;

use super::Native;

impl Native {
    /// Sockets of this machine that listen for TCP connections.
    #[must_use]
    pub fn host_listeners(&self) -> Vec<Listener> {
        let mut found: Vec<Listener> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .flat_map(|text| text.lines().skip(1).filter_map(parse).collect::<Vec<_>>())
            .collect();
        found.sort();
        found.dedup();
        found
    }
}

/// Reads one line of `/proc/net/tcp`: the second field is the address, the fourth the state (0A: listening).
fn parse(line: &str) -> Option<Listener> {
    let mut fields = line.split_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != "0A" {
        return None;
    }
    // Addresses are groups of four bytes, each group in the machine's byte order.
    let groups: Vec<u32> = (0..address.len() / 8)
        .map(|at| u32::from_str_radix(&address[at * 8..at * 8 + 8], 16))
        .collect::<Result<_, _>>()
        .ok()?;
    let bytes: Vec<u8> = groups.into_iter().flat_map(u32::to_ne_bytes).collect();
    let address = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(Listener { address: address.to_string(), port: u16::from_str_radix(port, 16).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_read_and_others_are_not() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 1 1";
        assert_eq!(parse(line), Some(Listener { address: "127.0.0.1".into(), port: 8080 }));
        assert_eq!(parse(&line.replace(" 0A ", " 01 ")), None);
        let line = "   1: 00000000000000000000000001000000:0050 0:0 0A 0:0 0:0 0 0 0 1 1";
        assert_eq!(parse(line), Some(Listener { address: "::1".into(), port: 80 }));
    }
}
