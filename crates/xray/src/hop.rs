//! What the head of a message says of its connection, for whoever passes messages on from one connection to another.

use hyper::header::{CONNECTION, HeaderMap, HeaderName, TE, UPGRADE};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;

/// What a request becomes if the other side agrees to another protocol. None: it does not ask for one.
#[must_use]
pub fn take_upgrade(parts: &mut Parts) -> Option<OnUpgrade> {
    parts.headers.get(UPGRADE)?;
    parts.extensions.remove::<OnUpgrade>()
}

/// Takes out what is about one connection and not about the request.
pub fn strip(headers: &mut HeaderMap, keeps_upgrade: bool) {
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
