//! The packet rules of a sandbox's network namespace, by netfilter's own messages: no program of the machine is needed.
//!
//! ```text
//! chain redirect (nat, output)             chain refuse (filter, output)
//!   udp dport 53: to DNS_PORT                ct direction reply: return
//!   ip daddr 127.0.0.0/8: return             ip daddr 127.0.0.0/8: return
//!   ip6 daddr ::1: return                    ip6 daddr ::1: return
//!   tcp: to TCP_PORT                         tcp: return
//!                                            log, reject
//! ```
//! A refused packet has its own way through the second chain: what the first redirected goes to loopback by then.

use std::io;

use rustix::net::netlink::NETFILTER;

use super::netlink::{ACK, APPEND, Batch, Body, CREATE, open};
use super::{DNS_PORT, LOG_GROUP, TCP_PORT};

pub(super) fn install() -> io::Result<()> {
    let mut batch = Batch::default();
    batch.message(BATCH_BEGIN, 0, |body| head(body, UNSPECIFIED, TABLES));
    batch.message(kind(NEW_TABLE), CREATE, |body| {
        head(body, BOTH_FAMILIES, 0);
        body.text(1, TABLE);
    });
    chain(&mut batch, REDIRECT, "nat", PRIORITY_DESTINATION_NAT);
    chain(&mut batch, REFUSE, "filter", PRIORITY_FILTER);
    rule(&mut batch, REDIRECT, &[Is::Udp, Is::ToPort(53), Is::RedirectTo(DNS_PORT)]);
    rule(&mut batch, REDIRECT, &[Is::Ipv4, Is::ToLoopback4, Is::Return]);
    rule(&mut batch, REDIRECT, &[Is::Ipv6, Is::ToLoopback6, Is::Return]);
    rule(&mut batch, REDIRECT, &[Is::Tcp, Is::RedirectTo(TCP_PORT)]);
    rule(&mut batch, REFUSE, &[Is::Reply, Is::Return]);
    rule(&mut batch, REFUSE, &[Is::Ipv4, Is::ToLoopback4, Is::Return]);
    rule(&mut batch, REFUSE, &[Is::Ipv6, Is::ToLoopback6, Is::Return]);
    rule(&mut batch, REFUSE, &[Is::Tcp, Is::Return]);
    rule(&mut batch, REFUSE, &[Is::Logged, Is::Rejected]);
    batch.message(BATCH_END, ACK, |body| head(body, UNSPECIFIED, TABLES));
    batch.send(&open(Some(NETFILTER))?)
}

/// Asks for what the last rule logs, on this socket from now on.
pub(super) fn hear_log(socket: &std::os::fd::OwnedFd) -> io::Result<()> {
    let mut batch = Batch::default();
    batch.message(LOG_CONFIG, ACK, |body| {
        head(body, UNSPECIFIED, LOG_GROUP);
        // Bind to the group, then have the first bytes of every packet copied.
        body.attribute(1, &[1]);
    });
    batch.message(LOG_CONFIG, ACK, |body| {
        head(body, UNSPECIFIED, LOG_GROUP);
        let mut mode = LOGGED_BYTES.to_be_bytes().to_vec();
        mode.extend([2, 0]);
        // One by one: the kernel would wait for a hundred of them, or a second.
        body.attribute(2, &mode).number(5, 1);
    });
    batch.send(socket)
}

/// The parts that rules are made of.
#[derive(Clone, Copy, Debug)]
enum Is {
    Tcp,
    Udp,
    Ipv4,
    Ipv6,
    ToPort(u16),
    ToLoopback4,
    ToLoopback6,
    /// Of a packet that answers one that was let through.
    Reply,
    RedirectTo(u16),
    Return,
    Logged,
    Rejected,
}

fn rule(batch: &mut Batch, chain: &str, parts: &[Is]) {
    batch.message(kind(NEW_RULE), CREATE | APPEND, |body| {
        head(body, BOTH_FAMILIES, 0);
        body.text(1, TABLE)
            .text(2, chain)
            .nested(4 | NESTED, |body| parts.iter().for_each(|part| part.write(body)));
    });
}

impl Is {
    fn write(self, body: &mut Body<'_>) {
        match self {
            Self::Tcp => meta_is(body, META_PROTOCOL, 6),
            Self::Udp => meta_is(body, META_PROTOCOL, 17),
            Self::Ipv4 => meta_is(body, META_FAMILY, 2),
            Self::Ipv6 => meta_is(body, META_FAMILY, 10),
            // The destination port, address or first byte of it, by its place in the header.
            Self::ToPort(port) => header_is(body, TRANSPORT_HEADER, 2, &port.to_be_bytes()),
            Self::ToLoopback4 => header_is(body, NETWORK_HEADER, 16, &[127]),
            Self::ToLoopback6 => header_is(body, NETWORK_HEADER, 24, &std::net::Ipv6Addr::LOCALHOST.octets()),
            Self::Reply => {
                expression(body, "ct", |body| {
                    body.number(1, REGISTER).number(2, 1);
                });
                equals(body, &[1]);
            }
            Self::RedirectTo(port) => {
                expression(body, "immediate", |body| {
                    body.number(1, REGISTER).nested(2 | NESTED, |body| {
                        body.attribute(1, &port.to_be_bytes());
                    });
                });
                expression(body, "redir", |body| {
                    body.number(1, REGISTER).number(2, REGISTER).number(3, 2);
                });
            }
            Self::Return => expression(body, "immediate", |body| {
                let verdict = |body: &mut Body<'_>| {
                    body.nested(2 | NESTED, |body| {
                        body.attribute(1, &(-5_i32).to_be_bytes());
                    });
                };
                body.number(1, 0).nested(2 | NESTED, verdict);
            }),
            Self::Logged => expression(body, "log", |body| {
                body.attribute(1, &LOG_GROUP.to_be_bytes()).number(3, LOGGED_BYTES);
            }),
            // Forbidden by an administrator, whatever the family.
            Self::Rejected => expression(body, "reject", |body| {
                body.number(1, 2).attribute(2, &[3]);
            }),
        }
    }
}

fn meta_is(body: &mut Body<'_>, key: u32, value: u8) {
    expression(body, "meta", |body| {
        body.number(1, REGISTER).number(2, key);
    });
    equals(body, &[value]);
}

fn header_is(body: &mut Body<'_>, base: u32, offset: u32, value: &[u8]) {
    expression(body, "payload", |body| {
        body.number(1, REGISTER).number(2, base).number(3, offset).number(4, value.len() as u32);
    });
    equals(body, value);
}

fn equals(body: &mut Body<'_>, value: &[u8]) {
    expression(body, "cmp", |body| {
        body.number(1, REGISTER).number(2, 0).nested(3 | NESTED, |body| {
            body.attribute(1, value);
        });
    });
}

fn expression(body: &mut Body<'_>, name: &str, fill: impl FnOnce(&mut Body<'_>)) {
    body.nested(1 | NESTED, |body| {
        body.text(1, name).nested(2 | NESTED, fill);
    });
}

fn chain(batch: &mut Batch, name: &str, sort: &str, priority: i32) {
    batch.message(kind(NEW_CHAIN), CREATE, |body| {
        head(body, BOTH_FAMILIES, 0);
        let hook = |body: &mut Body<'_>| {
            body.number(1, HOOK_OUTPUT).attribute(2, &priority.to_be_bytes());
        };
        body.text(1, TABLE).text(3, name).nested(4 | NESTED, hook).text(7, sort);
    });
}

/// What every message of netfilter begins with.
fn head(body: &mut Body<'_>, family: u8, resource: u16) {
    body.raw(&[family, 0]).raw(&resource.to_be_bytes());
}

fn kind(message: u16) -> u16 {
    TABLES << 8 | message
}

const TABLE: &str = "zeno";
const REDIRECT: &str = "redirect";
const REFUSE: &str = "refuse";
/// Enough for the headers that tell where a packet was to go.
const LOGGED_BYTES: u32 = 64;

// The kernel's own numbers, from linux/netfilter.h and linux/netfilter/.
const TABLES: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const LOG_CONFIG: u16 = 4 << 8 | 1;
const NESTED: u16 = 0x8000;
const UNSPECIFIED: u8 = 0;
const BOTH_FAMILIES: u8 = 1;
const HOOK_OUTPUT: u32 = 3;
const PRIORITY_DESTINATION_NAT: i32 = -100;
const PRIORITY_FILTER: i32 = 0;
const REGISTER: u32 = 1;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
