//! What the head of a request says of its host and of its connection.

use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, TE, UPGRADE};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::upgrade::OnUpgrade;

/// The name in what a request says of its host, without its port.
pub(super) fn said_host(parts: &Parts) -> Option<String> {
    let header = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = parts.uri.authority().map(Authority::as_str);
    // One that says two hosts is read by some as the one, by others as the other.
    if let (Some(header), Some(authority)) = (header, authority)
        && !header.eq_ignore_ascii_case(authority)
    {
        return None;
    }
    if parts.headers.get_all(HOST).iter().count() > 1 {
        return None;
    }
    let authority: Authority = authority.or(header)?.parse().ok()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

/// What a request becomes if the host agrees to another protocol. None: it does not ask for one.
pub(super) fn take_upgrade(parts: &mut Parts) -> Option<OnUpgrade> {
    parts.headers.get(UPGRADE)?;
    parts.extensions.remove::<OnUpgrade>()
}

/// Takes out what is about one connection and not about the request.
pub(super) fn strip(headers: &mut HeaderMap, keeps_upgrade: bool) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let keeps = |name: &HeaderName| keeps_upgrade && (*name == CONNECTION || *name == UPGRADE);
    let own = HOP.iter().map(|name| HeaderName::from_static(name));
    for name in listed.into_iter().chain(own).filter(|name| !keeps(name)) {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|te| te != "trailers") {
        headers.remove(TE);
    }
}

const HOP: [&str; 6] =
    ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding", "upgrade"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_said_once() {
        let said = |uri: &str, hosts: &[&str]| {
            let builder = hyper::Request::get(uri);
            let builder = hosts.iter().fold(builder, |builder, host| builder.header(HOST, *host));
            said_host(&builder.body(()).unwrap().into_parts().0)
        };
        assert_eq!(said("/", &["A.example:8443"]).as_deref(), Some("a.example"));
        assert_eq!(said("https://a.example./x", &[]).as_deref(), Some("a.example"));
        assert_eq!(said("/", &["[::1]:80"]).as_deref(), Some("::1"));
        for (uri, hosts) in
            [("/", &[][..]), ("/", &["a.example", "b.example"]), ("https://a.example/", &["b.example"])]
        {
            assert_eq!(said(uri, hosts), None, "{uri} {hosts:?}");
        }
    }

    #[test]
    fn what_is_about_one_connection_goes() {
        let request = hyper::Request::get("/")
            .header("connection", "close, x-own")
            .header("x-own", "1")
            .header("upgrade", "websocket")
            .header("te", "trailers")
            .header("x-kept", "1");
        let mut headers = request.body(()).unwrap().into_parts().0.headers;
        let mut upgraded = headers.clone();
        strip(&mut headers, false);
        strip(&mut upgraded, true);
        let names =
            |headers: &HeaderMap| headers.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(names(&headers), "te x-kept");
        assert!(upgraded.contains_key(UPGRADE) && upgraded.contains_key(CONNECTION));
    }
}
