//! What a service is told of a request: its head as it would be without this door, and where it came from.

use axum::http::header::{CONNECTION, EXPECT, FORWARDED, HOST};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use model::SandboxId;

use crate::e2b::keys::Keys;

/// The port of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    pub(super) sandbox: SandboxId,
    pub(super) port: u16,
}

/// What comes from outside becomes what goes in.
pub(super) fn inwards(parts: &mut Parts, to: Destination, keys: &Keys, keeps_upgrade: bool) {
    let said = said_host(parts);
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    parts.version = Version::HTTP_11;
    let headers = &mut parts.headers;
    xray::hop::strip(headers, keeps_upgrade);
    if keeps_upgrade {
        // And of nothing else: what this names is taken out by whoever reads it next.
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    // It has been expected by this side already.
    headers.remove(EXPECT);
    take_out(headers, keys);
    let ours = format!("{}-{}.", to.port, to.sandbox);
    let own = HeaderValue::try_from(format!("localhost:{}", to.port)).expect("it is plain text");
    // Its own name is what pages of it were found by: links and checks of the origin hold. Any other is of this door.
    let host = said.clone().filter(|said| said.as_bytes().starts_with(ours.as_bytes())).unwrap_or(own);
    headers.insert(HOST, host);
    headers.insert(FORWARDED_FOR, HeaderValue::from_static("127.0.0.1"));
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    if let Some(said) = said {
        headers.insert(FORWARDED_HOST, said);
    }
}

fn said_host(parts: &Parts) -> Option<HeaderValue> {
    let header = parts.headers.get(HOST).cloned();
    header.or_else(|| HeaderValue::try_from(parts.uri.authority()?.as_str()).ok())
}

/// What is of this door alone, what opens it, and what whoever asks says of where it comes from.
fn take_out(headers: &mut HeaderMap, keys: &Keys) {
    let goes = |(name, value): (&HeaderName, &HeaderValue)| {
        let is_of_door =
            DOOR.contains(&name.as_str()) || *name == FORWARDED || name.as_str().starts_with("x-forwarded-");
        (is_of_door || keys.is_any(value.as_bytes())).then(|| name.clone())
    };
    let gone: Vec<HeaderName> = headers.iter().filter_map(goes).collect();
    for name in gone {
        headers.remove(name);
    }
}

pub(super) const TRAFFIC_TOKEN: &str = "e2b-traffic-access-token";
const DOOR: [&str; 3] = ["e2b-sandbox-id", "e2b-sandbox-port", TRAFFIC_TOKEN];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::api::Token;

    fn inside(request: axum::http::request::Builder, keeps_upgrade: bool) -> (String, Vec<String>) {
        let keys = Keys::of(&Token::parse(&"ab".repeat(32)).unwrap());
        let mut parts = request.body(()).unwrap().into_parts().0;
        let to = Destination { sandbox: SandboxId::from_bits(5), port: 3000 };
        inwards(&mut parts, to, &keys, keeps_upgrade);
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<String> = parts.headers.iter().map(line).collect();
        lines.sort();
        (parts.uri.to_string(), lines)
    }

    #[test]
    fn what_opens_doors_stays_outside_and_what_is_a_services_own_goes_in() {
        let keys = Keys::of(&Token::parse(&"ab".repeat(32)).unwrap());
        let request = Request::get("/a?b=c")
            .header("host", "127.0.0.1:7070")
            .header("e2b-sandbox-id", "x")
            .header("e2b-sandbox-port", "3000")
            .header("x-access-token", keys.token_of(SandboxId::from_bits(9)))
            .header("x-api-key", format!("e2b_{}", "ab".repeat(32)))
            .header("authorization", format!("Bearer {}", "ab".repeat(32)))
            .header("x-forwarded-for", "1.2.3.4")
            .header("forwarded", "for=1.2.3.4")
            .header("connection", "x-own")
            .header("x-own", "1")
            .header("cookie", "a=b");
        let forwarded =
            ["x-forwarded-for: 127.0.0.1", "x-forwarded-host: 127.0.0.1:7070", "x-forwarded-proto: http"];
        let (uri, lines) = inside(request, false);
        assert_eq!(uri, "/a?b=c");
        assert_eq!(lines, [&["cookie: a=b", "host: localhost:3000"][..], &forwarded].concat());
        let own = Request::get("/")
            .header("host", "127.0.0.1:7070")
            .header("x-api-key", "mine")
            .header("authorization", "Bearer mine");
        let (_, lines) = inside(own, false);
        let mine = ["authorization: Bearer mine", "host: localhost:3000", "x-api-key: mine"];
        assert_eq!(lines, [&mine[..], &forwarded].concat());
    }

    #[test]
    fn a_service_is_called_by_the_name_it_was_found_by() {
        let id = SandboxId::from_bits(5);
        let host = format!("3000-{id}.localhost:7070");
        let request = Request::get(format!("http://{host}/x"))
            .header("host", &host)
            .header("connection", "keep-alive, host, Upgrade")
            .header("upgrade", "websocket");
        let (uri, lines) = inside(request, true);
        assert_eq!(uri, "/x");
        let expected = [
            "connection: Upgrade".to_owned(),
            format!("host: {host}"),
            "upgrade: websocket".to_owned(),
            "x-forwarded-for: 127.0.0.1".to_owned(),
            format!("x-forwarded-host: {host}"),
            "x-forwarded-proto: http".to_owned(),
        ];
        assert_eq!(lines, expected);
        let other = Request::get("/").header("host", format!("3001-{id}.localhost:7070"));
        assert!(inside(other, false).1.contains(&"host: localhost:3000".to_owned()));
    }
}
