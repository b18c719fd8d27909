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
mod tests;
