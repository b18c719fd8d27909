//! What a connection says of itself with its first bytes: the server a TLS client names, the host of an HTTP request.
//!
//! Whoever is allowed to reach one name must not say another: a server of many names would take it there.

use std::borrow::Cow;

/// What is known after so many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// So few bytes that it could be anything. No server acts on them.
    Unknown,
    /// A request or a handshake of which more has to come.
    Unfinished,
    /// It names this server: a name, or an address as text.
    For(String),
    /// It names none, or is of a protocol in which none is named.
    Silent,
    /// It names more than one, or one that servers read differently: nobody can tell who will answer.
    Unclear,
}

/// Reads the first bytes that a client sent.
pub(super) fn read(bytes: &[u8]) -> Opening {
    match bytes {
        [first, 3, ..] if RECORDS.contains(first) => return tls(bytes),
        [first] if RECORDS.contains(first) => return Opening::Unfinished,
        _ => {}
    }
    // Servers pass over empty lines before a request, and some over blanks.
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n') || is_blank(**byte)).count();
    match bytes.get(blank) {
        None => Opening::Unknown,
        Some(first) if is_of_method(*first) => http(&bytes[blank..]),
        Some(_) => Opening::Silent,
    }
}

/// A client hello, which may come in several records. A server may pass over anything else before it, and nobody knows which.
fn tls(bytes: &[u8]) -> Opening {
    let mut hello = Vec::new();
    let mut rest = bytes;
    while let Some([kind, major]) = rest.first_chunk::<2>() {
        if *kind != HANDSHAKE || *major != 3 {
            return Opening::Unclear;
        }
        let Some(head) = rest.first_chunk::<5>() else { break };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let Some(record) = rest.get(5..5 + length) else { break };
        hello.extend_from_slice(record);
        rest = &rest[5 + length..];
        let Some([kind, a, b, c]) = hello.first_chunk::<4>() else { continue };
        if *kind != CLIENT_HELLO {
            return Opening::Unclear;
        }
        let whole = 4 + (usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c));
        if hello.len() >= whole {
            return server_name(&hello[4..whole]).unwrap_or(Opening::Unclear);
        }
    }
    Opening::Unfinished
}

/// None: it is not as it should be.
fn server_name(hello: &[u8]) -> Option<Opening> {
    // Version and random, then the session, the ciphers and the compressions, each with its length before it.
    let rest = hello.get(34..)?;
    let (_, rest) = counted(rest, 1)?;
    let (_, rest) = counted(rest, 2)?;
    let (_, rest) = counted(rest, 1)?;
    if rest.is_empty() {
        return Some(Opening::Silent);
    }
    let (mut extensions, _) = counted(rest, 2)?;
    let mut named = None;
    while let Some(kind) = extensions.first_chunk::<2>() {
        let (extension, rest) = counted(&extensions[2..], 2)?;
        if *kind == SERVER_NAME {
            let (names, after) = counted(extension, 2)?;
            // The only kind of name there is, and one of it: which of two a server takes is its own affair.
            let (name, more) = counted(names.strip_prefix(&[0])?, 2)?;
            let is_only = after.is_empty() && more.is_empty() && named.is_none();
            named = Some(host(std::str::from_utf8(name).ok()?).filter(|_name| is_only)?);
        }
        extensions = rest;
    }
    Some(named.map_or(Opening::Silent, Opening::For))
}

/// Bytes with their number before them, and what follows.
fn counted(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_at_checked(width)?;
    let count = count.iter().fold(0, |count, byte| count << 8 | usize::from(*byte));
    rest.split_at_checked(count)
}

/// A request of HTTP/1, to the end of its headers: a later header may say another name than an earlier one.
fn http(bytes: &[u8]) -> Opening {
    let method = bytes.iter().take_while(|byte| is_of_method(**byte)).count();
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return match bytes.get(method) {
            _ if method > LONGEST_METHOD => Opening::Silent,
            None => Opening::Unknown,
            Some(byte) if is_blank(*byte) => Opening::Unfinished,
            Some(_) => Opening::Silent,
        };
    };
    let first = &bytes[..end];
    let words: Vec<&[u8]> =
        first.split(|byte| is_blank(*byte) || *byte == b'\r').filter(|word| !word.is_empty()).collect();
    let (method, target) = match words[..] {
        // What HTTP/2 begins with, so that whoever does not speak it takes it for a request.
        [b"PRI", b"*", ..] => return Opening::Silent,
        [name, target, ..] if name.len() == method && words.iter().any(|word| is_version(word)) => {
            (String::from_utf8_lossy(name), String::from_utf8_lossy(target))
        }
        _ => return Opening::Silent,
    };
    let mut named: Vec<Option<String>> = authority(&method, &target).map(host).into_iter().collect();
    if line(first).is_none() {
        named.push(None);
    }
    let mut rest = &bytes[end + 1..];
    let mut is_host = false;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = line(&rest[..end]);
        rest = &rest[end + 1..];
        let Some(header) = header else {
            named.push(None);
            continue;
        };
        if header.is_empty() {
            named.dedup();
            return match named.as_slice() {
                [] => Opening::Silent,
                [Some(name)] => Opening::For(name.clone()),
                _ => Opening::Unclear,
            };
        }
        // A line of blanks is the end of the head to some, and a line that goes on with the one before is read in many ways.
        if header.trim().is_empty() || (is_host && header.starts_with([' ', '\t'])) {
            named.push(None);
        }
        let (name, value) = header.split_once(':').unwrap_or((&header, ""));
        is_host = name.trim().eq_ignore_ascii_case("host");
        if is_host && !value.trim().is_empty() {
            named.push(host(value.trim()));
        }
    }
    Opening::Unfinished
}

/// A line without its end. None: some take another character within it for one.
fn line(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    (!bytes.contains(&b'\r')).then(|| String::from_utf8_lossy(bytes))
}

fn is_version(word: &[u8]) -> bool {
    word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
}

/// What the words of a request are told apart by, by whoever is lenient: more than RFC 9112 knows.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | 0x1c..=0x1f | 0x85 | 0xa0)
}

/// What a request's first line names, if it does: whoever is asked so is to ask another.
fn authority<'a>(method: &str, target: &'a str) -> Option<&'a str> {
    let whole = match target.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#']).next().unwrap_or_default(),
        None if method.eq_ignore_ascii_case("CONNECT") => target,
        None => return None,
    };
    Some(whole.rsplit_once('@').map_or(whole, |(_, host)| host))
}

/// The name or address in a host, without its port. None: neither.
fn host(text: &str) -> Option<String> {
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => text,
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok().then(|| address.to_owned());
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!name.is_empty() && name.chars().all(is_letter)).then_some(name)
}

/// By the letters of a token (RFC 9110, 5.6.2): there are servers that take any for a method.
fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(super) const HANDSHAKE: u8 = 22;
/// The kinds of records there are.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=24;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: [u8; 2] = [0, 0];
const LONGEST_METHOD: usize = 64;
/// What is not clear by then never will be.
pub(super) const LONGEST: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client hello as a client sends it, with a name and another extension before it.
    fn hello(name: &str) -> Vec<u8> {
        hello_of(&[name])
    }

    /// The same with so many names in its list.
    fn hello_of(names: &[&str]) -> Vec<u8> {
        let counted =
            |bytes: Vec<u8>, width: usize| [&bytes.len().to_be_bytes()[8 - width..], &bytes].concat();
        let names = names.iter().flat_map(|name| [vec![0], counted(name.as_bytes().to_vec(), 2)].concat());
        let names = counted(names.collect(), 2);
        let extensions = [vec![0, 23], counted(Vec::new(), 2), vec![0, 0], counted(names, 2)].concat();
        let body = [
            vec![3; 34],
            counted(vec![7; 32], 1),
            counted(vec![1, 2], 2),
            counted(vec![0], 1),
            counted(extensions, 2),
        ];
        let message = [vec![1], counted(body.concat(), 3)].concat();
        message.chunks(100).flat_map(|piece| [vec![22, 3, 1], counted(piece.to_vec(), 2)].concat()).collect()
    }

    fn is_for(name: &str) -> Opening {
        Opening::For(name.to_owned())
    }

    #[test]
    fn the_server_of_a_tls_client() {
        let bytes = hello("Example.ORG");
        assert_eq!(read(&bytes), is_for("example.org"));
        for length in 1..bytes.len() {
            assert_eq!(read(&bytes[..length]), Opening::Unfinished, "{length}");
        }
        assert_eq!(read(b"\x16\x02rubbish"), Opening::Silent);
    }

    #[test]
    fn a_hello_comes_first_and_names_one() {
        assert_eq!(read(&hello_of(&["a.org", "b.org"])), Opening::Unclear);
        for kind in [20, 21, 23, 24] {
            let before = [vec![kind, 3, 3, 0, 1, 1], hello("b.org")].concat();
            assert_eq!(read(&before[..1]), Opening::Unfinished, "{kind}");
            assert_eq!(read(&before), Opening::Unclear, "{kind}");
            // Between two records of the hello.
            let whole = hello("a-name-that-needs-two-records.example.org");
            let first = 5 + 100;
            let between = [&whole[..first], &[kind, 3, 3, 0, 1, 1], &whole[first..]].concat();
            assert_eq!(read(&between), Opening::Unclear, "{kind}");
            assert_eq!(read(&[kind, 0, 1]), Opening::Silent, "{kind}");
        }
        assert_eq!(read(b"\x16\x03\x01\0\x04\0\0\0\0"), Opening::Unclear);
    }

    #[track_caller]
    fn check(text: &str, expected: Opening) {
        assert_eq!((text, read(text.as_bytes())), (text, expected));
    }

    #[test]
    fn the_host_of_a_request() {
        check("GET / HTTP/1.1\r\nAccept: */*\r\nhOsT: Example.org:8080\r\n\r\n", is_for("example.org"));
        check("GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n", is_for("1.2.3.4"));
        check("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", is_for("::1"));
        check("GET / HTTP/1.1\r\nHost:\r\n\r\n", Opening::Silent);
        check("GET / HTTP/1.0\r\n\r\nHost: x\r\n", Opening::Silent);
        check("GE", Opening::Unknown);
        check("GET / HTT", Opening::Unfinished);
        check("GET / HTTP/1.1\r\nHost: exa", Opening::Unfinished);
        check("GET / HTTP/1.1\r\nHost: example.org\r\n", Opening::Unfinished);
        // Others, which speak first, too.
        check("EHLO me\r\n", Opening::Silent);
        check("*1\r\n$4\r\nPING\r\n", Opening::Silent);
        check("SSH-2.0-OpenSSH_9.2\r\n", Opening::Silent);
        check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Opening::Silent);
        check("\0\0\0\x08\x04", Opening::Silent);
        check(&"x".repeat(100), Opening::Silent);
    }

    #[test]
    fn what_a_lenient_server_takes_for_a_request_is_one() {
        check("\r\n\nGET / HTTP/1.1\r\nHost: a.org\r\n\r\n", is_for("a.org"));
        check("get / HTTP/1.1\nhost : a.org\n\n", is_for("a.org"));
        check("\r\n", Opening::Unknown);
        check("GET\t/\tHTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
        check("GET\t/ HTT", Opening::Unfinished);
        check(" \tGET / HTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
        check("GET / HTTP/01.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
        check("GET / http/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
        check("CONNECT\tb.org:443\tHTTP/1.1\r\n\r\n", is_for("b.org"));
    }

    /// Python's server reads on after a line of blanks, and takes a bare carriage return for the end of a line.
    #[test]
    fn what_ends_a_line_or_a_head_for_some_is_unclear() {
        check("GET / HTTP/1.1\r\n \r\nHost: b.org\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nHost: a.org\r\n\t\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nHost: a.org\r\n\r\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nX: y\rHost: b.org\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\rHost: b.org\r\n\r\n", Opening::Unclear);
    }

    #[test]
    fn whoever_is_to_ask_another_is_asked_for_that_one() {
        check("CONNECT b.org:443 HTTP/1.1\r\n\r\n", is_for("b.org"));
        check("CONNECT 10.0.0.1:22 HTTP/1.1\r\n\r\n", is_for("10.0.0.1"));
        check("GET http://me@b.org:80/x HTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
        check("GET http://b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", Opening::Unclear);
    }

    #[test]
    fn two_names_are_none() {
        check("GET / HTTP/1.1\r\nHost: a.org\r\nHost: b.org\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nHost: a.org\r\nHost: a.org\r\n\r\n", is_for("a.org"));
        check("GET / HTTP/1.1\r\nHost:\r\n b.org\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nHost: b.org#.a.org\r\n\r\n", Opening::Unclear);
        check("GET / HTTP/1.1\r\nHost: a.org, b.org\r\n\r\n", Opening::Unclear);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, first in prop::sample::select(vec![22_u8, b'G', 0])) {
            read(&bytes);
            read(&[&[first][..], &bytes].concat());
        }

        #[test]
        fn a_hello_with_anything_changed_is_survived(place in 0_usize..200, value: u8) {
            let mut bytes = hello("example.org");
            let place = place % bytes.len();
            bytes[place] = value;
            read(&bytes);
        }
    }
}
