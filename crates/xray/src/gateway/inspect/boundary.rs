//! Secrets at the boundary: what stands for them inside becomes their value, for the hosts they are meant for.
//!
//! In header values (also within a login that is coded in base64), path and query. Never in bodies, whose length is said
//! before. Where the head of an answer says a value, what stands for it is put back.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::ext::ReasonPhrase;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Response};
use model::net::{HOST, Secret, SecretValue};

/// Why a request with a placeholder does not go on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Held {
    #[error("the secret `{name}` is not meant for `{host}`")]
    OtherHost { name: String, host: String },
    #[error("the secret `{name}` would go over the wire for everyone to read: it needs TLS")]
    Open { name: String },
    #[error("the secret `{name}` would come back: TRACE is answered with the request itself")]
    Echoed { name: String },
    #[error(
        "the value of the secret `{name}` is not known to this daemon: give it again with `zeno net SANDBOX --secret {name}@{host}`"
    )]
    Gone { name: String, host: String },
    #[error("the secret `{name}` cannot stand in a request")]
    Unfit { name: String },
}

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination<'a> {
    pub(super) host: &'a str,
    pub(super) is_tls: bool,
}

/// Puts the values in, all or none.
pub(super) fn put_in(
    parts: &mut Parts,
    secrets: &[Secret],
    to: Destination<'_>,
    value: impl Fn(&str) -> Option<SecretValue>,
) -> Result<(), Held> {
    let mut due = Vec::new();
    for secret in secrets.iter().filter(|secret| is_in(parts, &secret.placeholder)) {
        let name = || secret.name.clone();
        if !secret.is_for(to.host) {
            return Err(Held::OtherHost { name: name(), host: to.host.to_owned() });
        }
        // What goes to this machine itself is on no wire.
        if !to.is_tls && to.host != HOST {
            return Err(Held::Open { name: name() });
        }
        if parts.method == Method::TRACE {
            return Err(Held::Echoed { name: name() });
        }
        let value =
            value(&secret.name).ok_or_else(|| Held::Gone { name: name(), host: to.host.to_owned() })?;
        due.push((secret, value));
    }
    for (secret, value) in due {
        replace(parts, &secret.placeholder, value.reveal())
            .ok_or_else(|| Held::Unfit { name: secret.name.clone() })?;
    }
    Ok(())
}

/// Puts back what stands for the values, wherever the head of an answer says them.
pub(super) fn take_out<B>(
    answer: &mut Response<B>,
    secrets: &[Secret],
    to: Destination<'_>,
    value: impl Fn(&str) -> Option<SecretValue>,
) {
    let known = secrets.iter().filter(|secret| secret.is_for(to.host));
    for (secret, value) in known.filter_map(|secret| Some((secret, value(&secret.name)?))) {
        let (plain, coded) = (value.reveal(), coded(value.reveal()));
        // What a server may say beside its status is its own words.
        let is_said = |reason: &ReasonPhrase| String::from_utf8_lossy(reason.as_bytes()).contains(plain);
        if answer.extensions().get::<ReasonPhrase>().is_some_and(is_said) {
            answer.extensions_mut().remove::<ReasonPhrase>();
        }
        for header in answer.headers_mut().values_mut() {
            let text = String::from_utf8_lossy(header.as_bytes()).into_owned();
            let new = match login(&text) {
                Some((scheme, login)) if login.contains(plain) => {
                    format!("{scheme} {}", BASE64_STANDARD.encode(login.replace(plain, &secret.placeholder)))
                }
                Some(_) | None => {
                    text.replace(plain, &secret.placeholder).replace(&coded, &secret.placeholder)
                }
            };
            if new != text {
                *header = HeaderValue::from_str(&new).unwrap_or_else(|_odd| HeaderValue::from_static(""));
            }
        }
    }
}

fn is_in(parts: &Parts, placeholder: &str) -> bool {
    let in_path = parts.uri.path_and_query().is_some_and(|path| path.as_str().contains(placeholder));
    let holds = |value: &HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        text.contains(placeholder) || login(&text).is_some_and(|(_, login)| login.contains(placeholder))
    };
    in_path || parts.headers.values().any(holds)
}

fn replace(parts: &mut Parts, placeholder: &str, value: &str) -> Option<()> {
    for header in parts.headers.values_mut() {
        let text = String::from_utf8_lossy(header.as_bytes()).into_owned();
        let new = match login(&text) {
            Some((scheme, login)) if login.contains(placeholder) => {
                format!("{scheme} {}", BASE64_STANDARD.encode(login.replace(placeholder, value)))
            }
            Some(_) | None if text.contains(placeholder) => text.replace(placeholder, value),
            Some(_) | None => continue,
        };
        *header = HeaderValue::from_str(&new).ok()?;
        // Never indexed by HTTP/2, never shown by whoever logs.
        header.set_sensitive(true);
    }
    let path = parts.uri.path_and_query().map(PathAndQuery::as_str).filter(|path| path.contains(placeholder));
    if let Some(path) = path {
        let path = path.replace(placeholder, &coded(value));
        let mut uri = parts.uri.clone().into_parts();
        uri.path_and_query = Some(path.parse().ok()?);
        parts.uri = hyper::Uri::from_parts(uri).ok()?;
    }
    Some(())
}

/// The name and password of a login as it stands in a header: `Basic YW5uOnNlY3JldA==`.
fn login(text: &str) -> Option<(&str, String)> {
    let (scheme, coded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    Some((scheme, String::from_utf8(BASE64_STANDARD.decode(coded.trim()).ok()?).ok()?))
}

fn coded(value: &str) -> String {
    let letter = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => (byte as char).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn secrets() -> Vec<Secret> {
        let hosts = vec!["a.example".parse().unwrap()];
        vec![Secret { name: "TOKEN".to_owned(), placeholder: "PLACEHOLDER".to_owned(), hosts }]
    }

    fn put(
        uri: &str,
        header: &str,
        to: Destination<'_>,
        value: Option<&str>,
    ) -> Result<(String, String), Held> {
        let (mut parts, ()) =
            Request::get(uri).header("authorization", header).body(()).unwrap().into_parts();
        let value = |_: &str| value.map(|value| SecretValue::new(value.to_owned()));
        put_in(&mut parts, &secrets(), to, value)?;
        Ok((parts.uri.to_string(), parts.headers["authorization"].to_str().unwrap().to_owned()))
    }

    const HERE: Destination<'_> = Destination { host: "a.example", is_tls: true };

    #[test]
    fn in_headers_logins_paths_and_queries() {
        let (uri, header) =
            put("/x/PLACEHOLDER?k=PLACEHOLDER", "Bearer PLACEHOLDER", HERE, Some("re al&1")).unwrap();
        assert_eq!((uri.as_str(), header.as_str()), ("/x/re%20al%261?k=re%20al%261", "Bearer re al&1"));
        let (_, header) = put("/", "Basic YW5uOlBMQUNFSE9MREVS", HERE, Some("real")).unwrap();
        assert_eq!(header, format!("Basic {}", BASE64_STANDARD.encode("ann:real")));
        assert_eq!(put("/", "none", HERE, None).unwrap().1, "none");
    }

    #[test]
    fn what_an_answer_says_is_put_back() {
        let secret = |_: &str| Some(SecretValue::new("re al/1".to_owned()));
        let answer = || {
            let login = format!("Basic {}", BASE64_STANDARD.encode("ann:re al/1"));
            let answer = Response::builder().header("x-echo", "a re al/1 b").header("x-login", login);
            answer.header("location", "/x?k=re%20al%2F1&y=1").header("x-other", "none").body(()).unwrap()
        };
        let said = |to: Destination<'_>| {
            let mut answer = answer();
            answer.extensions_mut().insert(ReasonPhrase::from_static(b"No re al/1"));
            take_out(&mut answer, &secrets(), to, secret);
            let headers = answer.headers().values().map(|value| value.to_str().unwrap().to_owned());
            (headers.collect::<Vec<_>>(), answer.extensions().get::<ReasonPhrase>().is_some())
        };
        let login = format!("Basic {}", BASE64_STANDARD.encode("ann:PLACEHOLDER"));
        let expected = ["a PLACEHOLDER b", &login, "/x?k=PLACEHOLDER&y=1", "none"];
        assert_eq!(said(HERE), (expected.map(str::to_owned).to_vec(), false));
        // Whoever never gets it cannot say it but by chance.
        let (untouched, _) = said(Destination { host: "b.example", ..HERE });
        assert_eq!(untouched[0], "a re al/1 b");
        let (mut parts, ()) = Request::builder()
            .method("TRACE")
            .uri("/")
            .header("x", "PLACEHOLDER")
            .body(())
            .unwrap()
            .into_parts();
        let held = put_in(&mut parts, &secrets(), HERE, secret).unwrap_err();
        assert_eq!(held, Held::Echoed { name: "TOKEN".to_owned() });
    }

    #[test]
    fn for_its_host_only_over_tls_only_and_only_while_it_is_known() {
        let held = |to, value| put("/", "Basic YW5uOlBMQUNFSE9MREVS", to, value).unwrap_err();
        let (name, host) = ("TOKEN".to_owned(), "b.example".to_owned());
        assert_eq!(
            held(Destination { host: "b.example", ..HERE }, Some("real")),
            Held::OtherHost { name: name.clone(), host }
        );
        assert_eq!(
            held(Destination { is_tls: false, ..HERE }, Some("real")),
            Held::Open { name: name.clone() }
        );
        assert_eq!(held(HERE, None), Held::Gone { name: name.clone(), host: "a.example".to_owned() });
        let unfit = put("/", "Bearer PLACEHOLDER", HERE, Some("two\nlines")).unwrap_err();
        assert_eq!(unfit, Held::Unfit { name });
    }
}
