//! What listens on the real machine. A sandbox does not carry it, and its user should know.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::sandbox::Listener;

#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub(crate) struct Error {
    path: &'static str,
    #[source]
    source: std::io::Error,
}

/// TCP only: what listens on UDP cannot be told from what merely sends.
pub(crate) async fn listeners() -> Result<Vec<Listener>, Error> {
    let mut found = BTreeSet::new();
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match tokio::fs::read_to_string(path).await {
            Ok(table) => found.extend(table.lines().filter_map(listener)),
            // A kernel without IPv6.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error { path, source }),
        }
    }
    Ok(found.into_iter().collect())
}

/// A line of the table: number, local address, remote address, state (0A is listening), and more.
fn listener(line: &str) -> Option<Listener> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    let listens = fields.nth(1)? == "0A";
    let address = address_of(address)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    listens.then(|| Listener { address: address.to_string(), port })
}

/// Words of 32 bits, printed as numbers of the machine's own byte order.
fn address_of(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for word in text.as_bytes().chunks(8) {
        let word = std::str::from_utf8(word).ok()?;
        bytes.extend(u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(|bytes| Ipv4Addr::from(bytes).into());
    v4.or_else(|_longer| <[u8; 16]>::try_from(bytes.as_slice()).map(|bytes| Ipv6Addr::from(bytes).into()))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_real_listener_is_seen_and_a_closed_one_is_not() {
        let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = v4.local_addr().unwrap().port();
        let listener = Listener { address: "127.0.0.1".to_owned(), port };
        assert!(listeners().await.unwrap().contains(&listener));
        drop(v4);
        assert!(!listeners().await.unwrap().contains(&listener));
    }

    #[test]
    fn lines_of_the_table() {
        let address = u32::from_ne_bytes([127, 0, 0, 1]);
        let line = format!("   0: {address:08X}:1F90 00000000:0000 0A 00000000:00000000 00:00000000");
        assert_eq!(listener(&line), Some(Listener { address: "127.0.0.1".to_owned(), port: 8080 }));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue rx_queue"), None);
        let zeros = "0".repeat(32);
        let line = format!("   0: {zeros}:0050 {zeros}:0000 0A");
        assert_eq!(listener(&line), Some(Listener { address: "::".to_owned(), port: 80 }));
        assert_eq!(listener("   0: ÄÖ:0050 x:0 0A"), None);
    }
}
