//! What the head of a request says of its host.

use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

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
}
