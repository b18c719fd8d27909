//! Every address is this sandbox's own: whatever is connected to stays in its namespace.

use std::io;

use super::netlink::{ACK, Batch, CREATE, open};

/// `ip route add local default dev lo`, for one family of addresses.
pub(super) fn make_everything_local(family: u8) -> io::Result<()> {
    let socket = open(None)?;
    let mut batch = Batch::default();
    batch.message(NEW_ROUTE, ACK | CREATE, |body| {
        // Family, lengths of destination and source, tos, table, protocol, scope, type; then flags.
        let fixed = [family, 0, 0, 0, TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL, 0, 0, 0, 0];
        body.raw(&fixed).attribute(OUTPUT_DEVICE, &LOOPBACK.to_ne_bytes());
    });
    batch.send(&socket)
}

const NEW_ROUTE: u16 = 24;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;
const OUTPUT_DEVICE: u16 = 4;
/// The first device of every network namespace.
const LOOPBACK: u32 = 1;
