//! What is asked of an HTTP proxy: a tunnel, or one request that names its server.

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// A name in lower case without a dot at its end, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tunnel,
    /// The request as its server is to hear it, with what was said after it.
    Once {
        head: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadAsk {
    #[error("the head of the request is too long")]
    TooLong,
    #[error("this is no HTTP/1 request")]
    NoHttp,
    #[error("this is a proxy: ask by CONNECT, or with the whole address (http://...)")]
    NotForProxy,
    #[error("the host that is asked for is none")]
    Host,
    #[error("a tunnel is not to be spoken into before it is there")]
    Early,
}

impl Ask {
    /// Reads all that was said until the end of the head came, or too much.
    pub(super) fn read(said: &[u8]) -> Result<Self, BadAsk> {
        let end = said.windows(4).position(|end| end == b"\r\n\r\n").ok_or(BadAsk::TooLong)?;
        let (head, body) = (&said[..end], &said[end + 4..]);
        let head = std::str::from_utf8(head).or(Err(BadAsk::NoHttp))?;
        let mut lines = head.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = words[..] else {
            return Err(BadAsk::NoHttp);
        };
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return if body.is_empty() {
                Ok(Self { host, port, kind: Kind::Tunnel })
            } else {
                Err(BadAsk::Early)
            };
        }
        let rest = target.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
        let rest = rest.map(|_| &target[SCHEME.len()..]).ok_or(BadAsk::NotForProxy)?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (named, path) = rest.split_at(at);
        let (host, port) = authority(named, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        // Whatever the client says of the host beside the address does not count (RFC 9112, 3.2.2).
        let mut new = format!("{method} {slash}{path} {version}\r\nHost: {named}\r\n");
        for line in lines.filter(|line| is_for_server(line)) {
            new.push_str(line);
            new.push_str("\r\n");
        }
        // One request for each connection: the next one may be for another server.
        new.push_str("Connection: close\r\n\r\n");
        Ok(Self { host, port, kind: Kind::Once { head: [new.as_bytes(), body].concat() } })
    }
}

fn is_for_server(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().trim();
    // A line that continues another, or a bare line end within one, would carry a header past us.
    let is_plain = !line.starts_with([' ', '\t']) && !line.contains(['\r', '\n']);
    is_plain && !NOT_PASSED_ON.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn authority(text: &str, usual: Option<u16>) -> Result<(String, u16), BadAsk> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(usual, |port| port.parse().ok()).filter(|port| *port > 0).ok_or(BadAsk::Host)?;
    if host.parse::<std::net::IpAddr>().is_ok() {
        return Ok((host.to_owned(), port));
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    // Anything else has more than one spelling; see the resolver. A last label of digits is an address in one of them.
    let is_name =
        host.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.'));
    let is_number =
        host.rsplit('.').next().is_some_and(|last| last.bytes().all(|letter| letter.is_ascii_digit()));
    if is_name && !is_number && host.len() <= 253 { Ok((host, port)) } else { Err(BadAsk::Host) }
}

const SCHEME: &str = "http://";
/// Of this connection only, or said anew.
const NOT_PASSED_ON: [&str; 5] =
    ["host", "connection", "proxy-connection", "keep-alive", "proxy-authorization"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tunnels() {
        let check = |target: &str, expected: Option<(&str, u16)>| {
            let ask =
                Ask::read(format!("CONNECT {target} HTTP/1.1\r\nHost: other.example\r\n\r\n").as_bytes());
            let found = ask.as_ref().ok().map(|ask| (ask.host.as_str(), ask.port));
            assert_eq!(found, expected, "{target}");
        };
        check("A.example.:443", Some(("a.example", 443)));
        check("[::1]:8443", Some(("::1", 8443)));
        check("10.0.0.1:80", Some(("10.0.0.1", 80)));
        for none in [
            "a.example",
            "a.example:0",
            "a.example:99999",
            ":443",
            "127.1:80",
            "a b:80",
            "x@y:80",
            "http://a:80",
        ] {
            check(none, None);
        }
        assert_eq!(Ask::read(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n\x16\x03"), Err(BadAsk::Early));
    }

    #[test]
    fn one_request_is_said_anew_for_the_server_that_it_names() {
        let said = b"POST http://a.example:8080?x=1 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\n\
                     Accept: */*\r\n\tHost: evil.example\r\nProxy-Connection: keep-alive\r\n\r\nbody";
        let expected =
            "POST /?x=1 HTTP/1.1\r\nHost: a.example:8080\r\nAccept: */*\r\nConnection: close\r\n\r\nbody";
        let ask = Ask::read(said).unwrap();
        assert_eq!((ask.host.as_str(), ask.port), ("a.example", 8080));
        assert_eq!(ask.kind, Kind::Once { head: expected.as_bytes().to_vec() });
        assert_eq!(Ask::read(b"GET / HTTP/1.1\r\n\r\n"), Err(BadAsk::NotForProxy));
        assert_eq!(Ask::read(b"GET https://a.example/ HTTP/1.1\r\n\r\n"), Err(BadAsk::NotForProxy));
        assert_eq!(Ask::read(b"SSH-2.0-x\r\n\r\n"), Err(BadAsk::NoHttp));
        assert_eq!(Ask::read(b"GET http://a.example/ HTTP/1.1\r\n"), Err(BadAsk::TooLong));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, text in "(GET|CONNECT) (http://)?[a-z:\\[\\]/.@ 0-9]* HTTP/1.1") {
            for said in [bytes, format!("{text}\r\n\r\n").into_bytes()] {
                if let Ok(ask) = Ask::read(&said) {
                    assert!(!ask.host.contains(['/', '@', ' ']) && ask.port > 0);
                }
            }
        }
    }
}
