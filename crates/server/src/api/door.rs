//! Who may come in. The Unix socket's door is its file mode; the TCP door asks for a token, and refuses what
//! a browser could have been talked into sending.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::{Code, Name, Problem};
use subtle::ConstantTimeEq;

use super::refusal::Refusal;

#[derive(Clone, Debug)]
pub enum Door {
    /// Only this user can open the socket.
    Unix,
    /// Anybody on this machine can connect.
    Tcp { token: Token, address: SocketAddr },
}

#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Text of at least 32 visible ASCII characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    pub(crate) fn matches(&self, offered: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(offered).into()
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The door that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Unix,
    Tcp,
}

impl Through {
    /// Some things are for whoever owns the daemon alone.
    pub(crate) fn must_be_unix(self) -> Result<(), Problem> {
        match self {
            Self::Unix => Ok(()),
            Self::Tcp => Err(Problem::new(Code::Forbidden, "this is done over the Unix socket only")),
        }
    }

    /// Who is elsewhere, or only has the token, cannot say that a person agreed: the question is asked at a terminal of
    /// whoever owns the Unix socket.
    pub(super) fn may_approve(self, approved: &BTreeSet<Name>) -> Result<(), Problem> {
        match (self, approved.first()) {
            (Self::Unix, _) | (Self::Tcp, None) => Ok(()),
            (Self::Tcp, Some(stage)) => {
                let detail = format!("that a person agreed to `{stage}` is not taken from here");
                Err(Problem::new(Code::Forbidden, detail)
                    .hint(format!("at a terminal: zeno promote SANDBOX --to {stage}")))
            }
        }
    }
}

pub(super) async fn guard(door: Arc<Door>, mut request: Request, next: Next) -> Response {
    let through = match &*door {
        Door::Unix => Through::Unix,
        Door::Tcp { .. } => Through::Tcp,
    };
    request.extensions_mut().insert(through);
    match admit(&door, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => Refusal::from(problem).into_response(),
    }
}

fn admit(door: &Door, request: &Request) -> Result<(), Problem> {
    let Door::Tcp { token, .. } = door else { return Ok(()) };
    admit_local(request)?;
    if request.uri().path() == OPEN_PATH {
        return Ok(());
    }
    let offered = only(request.headers(), &AUTHORIZATION)?.and_then(bearer);
    if offered.is_some_and(|offered| token.matches(offered.as_bytes())) {
        Ok(())
    } else {
        Err(Problem::new(Code::Unauthorized, "missing or wrong token")
            .hint("send `Authorization: Bearer TOKEN` with the contents of the file `token` in zeno's home"))
    }
}

/// Is it a request that no page from elsewhere can have been talked into?
pub(crate) fn admit_local(request: &Request) -> Result<(), Problem> {
    admit_from(request, is_local, |_host, origin| is_local_origin(origin))
}

/// The same of one whose Host may also be a name below `localhost`, where each sandbox has its own.
pub(crate) fn admit_below(request: &Request) -> Result<(), Problem> {
    admit_from(request, is_below, |_host, origin| is_local_origin(origin))
}

/// The same of one that goes to a service which the Host names: pages of exactly that service may ask it, too.
pub(crate) fn admit_own(request: &Request) -> Result<(), Problem> {
    admit_from(request, is_below, |host, origin| is_local_origin(origin) || is_of(host, origin))
}

fn admit_from(
    request: &Request,
    is_ours: impl Fn(&str) -> bool,
    may_ask: impl Fn(&str, &str) -> bool,
) -> Result<(), Problem> {
    // A page that made its own name resolve to this machine sends that name as Host; a page from
    // elsewhere sends its Origin.
    let host =
        only(request.headers(), &HOST)?.or_else(|| request.uri().authority().map(|host| host.as_str()));
    let Some(host) = host.filter(|host| is_ours(host)) else {
        return Err(Problem::new(Code::Forbidden, "the Host header does not name this machine")
            .hint("use http://localhost:PORT, http://127.0.0.1:PORT or http://[::1]:PORT"));
    };
    match only(request.headers(), &ORIGIN)? {
        Some(origin) if !may_ask(host, origin) => {
            Err(Problem::new(Code::Forbidden, "requests from other sites are refused"))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_below(host: &str) -> bool {
    is_local(host) || host.split_once('.').is_some_and(|(_, above)| is_local(above))
}

fn is_of(host: &str, origin: &str) -> bool {
    origin.strip_prefix("http://").is_some_and(|own| own.eq_ignore_ascii_case(host))
}

/// A header that may come once at most: of two, another reader might believe the other one.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|error| Problem::from_error(Code::BadRequest, &error))
        }
        (Some(_), Some(_)) => Err(Problem::new(Code::BadRequest, format!("more than one {name} header"))),
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

fn is_local_origin(origin: &str) -> bool {
    let scheme_and_host = origin.parse::<Uri>();
    scheme_and_host.is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && matches!(uri.path(), "" | "/")
            && uri.authority().is_some_and(|authority| is_local(authority.as_str()))
    })
}

fn is_local(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// The one route that asks for no token.
pub(super) const OPEN_PATH: &str = "/healthz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for local in ["localhost", "LOCALHOST:80", "127.0.0.1:4000", "[::1]", "[::1]:1"] {
            assert!(is_local(local), "{local}");
        }
        for foreign in [
            "",
            "evil.com",
            "localhost.evil.com",
            "evil.com:80",
            "127.0.0.1.evil.com",
            "::1",
            "a@localhost",
            "localhost:x",
        ] {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

    #[test]
    fn origins() {
        assert!(is_local_origin("http://localhost:3000"));
        for foreign in
            ["null", "http://evil.com", "file://localhost", "http://localhost@evil.com", "localhost"]
        {
            assert!(!is_local_origin(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_page_may_ask_where_it_came_from() {
        let asked = |host: &str, origin: &str| {
            let request = Request::builder().header(HOST, host).header(ORIGIN, origin);
            admit_own(&request.body(axum::body::Body::empty()).unwrap()).is_ok()
        };
        assert!(asked("3000-x.localhost:80", "http://3000-x.localhost:80"));
        assert!(asked("3000-x.localhost:80", "http://localhost:5173"));
        for other in ["http://3000-y.localhost:80", "http://3001-x.localhost:80", "http://evil.com", "null"] {
            assert!(!asked("3000-x.localhost:80", other), "{other}");
        }
        assert!(!asked("evil.com", "http://evil.com"));
    }
}
