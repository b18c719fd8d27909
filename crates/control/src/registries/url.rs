//! Addresses of registries, as tools write them.

use std::net::IpAddr;

use model::net::HOST;

/// What of one matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// In lower case, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Url {
    /// All there are in a text, whatever is between them.
    pub(super) fn all(text: &str) -> Vec<Self> {
        authorities(text).filter_map(|(scheme, range)| parse(scheme, &text[range])).collect()
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// This machine's own loopback.
    pub(super) fn is_home(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.address().is_some_and(|address| address.to_canonical().is_loopback())
    }
}

/// The same text without users and passwords.
pub(super) fn without_credentials(text: &str) -> String {
    rewritten(text, |_, bare| bare.to_owned())
}

/// The same text as it is meant inside a sandbox, where this machine is called `host`.
pub(super) fn from_inside(text: &str) -> String {
    rewritten(text, |scheme, bare| match parse(scheme, bare) {
        Some(url) if url.is_home() => format!("{HOST}:{}", url.port),
        Some(_) | None => bare.to_owned(),
    })
}

fn rewritten(text: &str, authority: impl Fn(&str, &str) -> String) -> String {
    let (mut new, mut done) = (String::new(), 0);
    for (scheme, range) in authorities(text) {
        new.push_str(&text[done..range.start]);
        new.push_str(&authority(scheme, bare(&text[range.clone()])));
        done = range.end;
    }
    new + &text[done..]
}

/// Schemes, and where in a text what follows their slashes stands, up to the path.
fn authorities(text: &str) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
    text.match_indices("://").map(|(at, slashes)| {
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let scheme = text[..at].rsplit(|c| !is_of_scheme(c)).next().unwrap_or_default();
        let start = at + slashes.len();
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | ',' | '|' | '"' | '\'' | '<' | ';');
        let end = text[start..].find(is_end).map_or(text.len(), |length| start + length);
        (scheme, start..end)
    })
}

fn bare(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, rest)| rest)
}

/// None: it is reached in another way than by HTTP, or is no address.
fn parse(scheme: &str, authority: &str) -> Option<Url> {
    // `sparse+https`, `registry+https`, `git+https`, `mirror+http`.
    let usual = match scheme.rsplit('+').next()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = bare(authority);
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None | Some("") => usual,
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    (!host.is_empty()).then_some(Url { host, port })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_and_ports() {
        let check = |text: &str, expected: &[(&str, u16)]| {
            let expected: Vec<Url> =
                expected.iter().map(|(host, port)| Url { host: (*host).to_owned(), port: *port }).collect();
            assert_eq!(Url::all(text), expected, "{text}");
        };
        check("https://a.example/npm/", &[("a.example", 443)]);
        check("sparse+http://A.example.:8080/index", &[("a.example", 8080)]);
        check("https://user:p%40ss@a.example", &[("a.example", 443)]);
        check("http://[fd00::1]:81/x", &[("fd00::1", 81)]);
        check("https://a.example,http://b.example|direct", &[("a.example", 443), ("b.example", 80)]);
        check("ssh://git@a.example/x file:///x https:// https://x:0 http://x:99999 a.example", &[]);
    }

    #[test]
    fn no_credential_is_handed_on_and_this_machine_is_called_host() {
        assert_eq!(without_credentials("https://me:secret@a.example/x?y"), "https://a.example/x?y");
        assert_eq!(
            from_inside("http://localhost:4873/ https://me:secret@127.0.0.1/x,http://[::1]:1"),
            "http://host:4873/ https://host:443/x,http://host:1"
        );
        assert_eq!(from_inside("http://a.example/@scope"), "http://a.example/@scope");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*", more in "[a-z:/@\\[\\]. ,é]*") {
            let text = format!("{text}http://{more}");
            assert!(Url::all(&text).len() <= text.len());
            assert!(!from_inside(&text).is_empty() && !without_credentials(&text).is_empty());
        }
    }
}
