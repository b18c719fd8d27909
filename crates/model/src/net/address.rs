//! Which addresses are anybody's, and which are this machine's or its neighbours'.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far away an address is. What is not public is reached only if it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// Of this machine's networks: RFC 1918, shared, unique local and the like. The ranges for documentation, too: nobody out
    /// there has them, so where one leads anywhere it is to something of the machine's own.
    Private,
    /// This machine, by an address that only it can know for its own. Never told by [`reach`].
    Own,
    /// This machine.
    Loopback,
    /// Only on the wire this machine is on: where clouds keep the credentials of their machines.
    Link,
    /// Nobody's: unspecified, multicast, reserved.
    Nowhere,
}

/// An IPv6 address that stands for an IPv4 one is as far away as that one.
#[must_use]
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach4(address),
        IpAddr::V6(address) => embedded(address.into()).map_or_else(|| reach6(address), reach4),
    }
}

fn reach4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    // Alibaba's metadata service lies in the shared range.
    if address == Ipv4Addr::new(100, 100, 100, 200) {
        return Reach::Link;
    }
    match (a, b, c) {
        (127, ..) => Reach::Loopback,
        (169, 254, _) => Reach::Link,
        (10, ..) | (192, 168, _) | (172, 16..=31, _) | (100, 64..=127, _) => Reach::Private,
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Reach::Private,
        (0, ..) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) | (224.., ..) => Reach::Nowhere,
        _ => Reach::Public,
    }
}

fn reach6(address: Ipv6Addr) -> Reach {
    // The metadata service of EC2 over IPv6.
    if address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254) {
        return Reach::Link;
    }
    let [first, second, ..] = address.segments();
    match first {
        _ if address == Ipv6Addr::LOCALHOST => Reach::Loopback,
        0xfe80..=0xfebf => Reach::Link,
        0xfc00..=0xfdff | 0xfec0..=0xfeff => Reach::Private,
        0x2001 if second == 0xdb8 => Reach::Private,
        0x2001 if second < 0x200 => Reach::Nowhere,
        // Of all there is, only this much is given out.
        0x2000..=0x3fff => Reach::Public,
        _ => Reach::Nowhere,
    }
}

/// The IPv4 address within a mapped, translated or 6to4 one.
pub(super) fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let segments = address.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_an_address_that_is_not_public() {
        let check = |text: &str, expected| assert_eq!(reach(text.parse().unwrap()), expected, "{text}");
        for public in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2002:808:808::1"]
        {
            check(public, Reach::Public);
        }
        for private in
            ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1", "fec0::1"]
        {
            check(private, Reach::Private);
        }
        for private in [
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
            "192.0.2.1",
            "203.0.113.9",
            "2001:db8::1",
        ] {
            check(private, Reach::Private);
        }
        for loopback in
            ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
        {
            check(loopback, Reach::Loopback);
        }
        for link in
            ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200"]
        {
            check(link, Reach::Link);
        }
        for nowhere in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "198.18.0.1"] {
            check(nowhere, Reach::Nowhere);
        }
        for nowhere in ["::", "ff02::1", "2001::1", "100::1", "4000::1", "::7f00:1"] {
            check(nowhere, Reach::Nowhere);
        }
    }
}
