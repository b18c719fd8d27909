//! Which sandbox a request is meant for, and which port of it.
//!
//! In this order: the first label of the Host (`PORT-ID.localhost`), the header `E2b-Sandbox-Id`, the token that a sandbox was made with,
//! the signature of a URL. The last two are for releases of the SDKs that forget to say it, and only for envd's own routes.

use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, http::HeaderName};
use jiff::Timestamp;
use model::{Sandbox, SandboxId, State};
use serde::Serialize;

use super::keys::{Operation, Signed};
use super::labels::Noted;
use super::{E2b, control};

/// To whom a request goes.
#[derive(Debug)]
pub(super) enum Meant {
    Inside(Box<Inside>, Gate),
    /// No sandbox is named.
    Nobody,
}

/// Who answers at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Envd,
    Interpreter,
    /// Whatever listens there in the sandbox.
    Service(u16),
}

/// The sandbox that a request is for. Whoever asked has shown its token, or not.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) sandbox: Sandbox,
    pub(super) has_token: bool,
}

/// What is answered in place of a sandbox that is not there or does not run. The clients look for these words.
#[derive(Debug)]
pub(super) struct NotRunning {
    id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    sandbox_id: &'a str,
    message: &'static str,
    code: u16,
}

/// A sandbox and a port, as they were named.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    id: String,
    port: u16,
}

pub(super) async fn of(door: &E2b, request: &Parts) -> Result<Meant, NotRunning> {
    let token = request.headers.get(ACCESS_TOKEN).map(|token| token.as_bytes());
    let path = request.uri.path();
    let named = match named(request) {
        // Some releases of the SDKs name the sandbox they hold to the control plane, too.
        Some(named) if named.port == ENVD && !is_of_envd(path) && control::is_for(path) => {
            return Ok(Meant::Nobody);
        }
        Some(named) => named,
        None if is_of_envd(path) => {
            let by_token = token.and_then(|token| door.keys.sandbox_of(token));
            let found = match by_token {
                Some(id) => Some(id),
                None => by_signature(door, request).await,
            };
            match found {
                Some(id) => Named { id: id.to_string(), port: ENVD },
                None => return Ok(Meant::Nobody),
            }
        }
        None => return Ok(Meant::Nobody),
    };
    let sandbox = running(door, named.id).await?;
    let has_token = token.is_some_and(|token| door.keys.is_of(sandbox.id, token));
    let gate = match named.port {
        ENVD => Gate::Envd,
        INTERPRETER => Gate::Interpreter,
        port => Gate::Service(port),
    };
    Ok(Meant::Inside(Box::new(Inside { sandbox, has_token }), gate))
}

/// A sandbox that runs, or can be woken because it was made so.
async fn running(door: &E2b, id: String) -> Result<Sandbox, NotRunning> {
    // By its whole id only: what a client of a program says is no name that a person typed.
    if id.parse::<SandboxId>().is_err() {
        return Err(NotRunning { id });
    }
    let Ok(sandbox) = door.app.control.get(&id).await else { return Err(NotRunning { id }) };
    match sandbox.state {
        State::Ready | State::Active => Ok(sandbox),
        State::Paused | State::Stopped | State::Expired
            if Noted::of(&sandbox.labels).is_some_and(|noted| noted.auto_resume) =>
        {
            control::wake(door, &sandbox).await.map_err(|failure| {
                tracing::warn!(sandbox = %id, failure = failure.message(), "failed to resume a sandbox");
                NotRunning { id }
            })
        }
        State::Paused
        | State::Stopped
        | State::Requested
        | State::Provisioning
        | State::Unreachable
        | State::Expired
        | State::Failed
        | State::Destroying
        | State::Destroyed => Err(NotRunning { id }),
    }
}

/// A page of a sandbox can send what headers it likes to where it came from, but not another Host: where that names a sandbox,
/// it is the one.
fn named(request: &Parts) -> Option<Named> {
    by_host(request).or_else(|| by_header(&request.headers))
}

fn by_header(headers: &HeaderMap) -> Option<Named> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let id = text(&SANDBOX_ID)?.to_owned();
    let port = text(&SANDBOX_PORT).and_then(|port| port.parse().ok()).unwrap_or(ENVD);
    Some(Named { id, port })
}

fn by_host(request: &Parts) -> Option<Named> {
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| request.uri.authority().map(|host| host.as_str())).and_then(first_label)
}

/// `3000-sbk3v7q2m4x6ab.localhost:8080`: a port and an id.
fn first_label(host: &str) -> Option<Named> {
    let (label, _) = host.split_once('.')?;
    let (port, id) = label.split_once('-')?;
    let port = port.parse().ok()?;
    id.parse::<SandboxId>().is_ok().then(|| Named { id: id.to_owned(), port })
}

fn is_of_envd(path: &str) -> bool {
    path == "/files"
        || path == "/health"
        || path == "/metrics"
        || path == "/envs"
        || path.starts_with("/process.Process/")
        || path.starts_with("/filesystem.Filesystem/")
}

/// A URL that was signed with the token of one of the sandboxes there are.
async fn by_signature(door: &E2b, request: &Parts) -> Option<SandboxId> {
    let query = FileQuery::of(request)?;
    let signature = query.signature.as_deref()?;
    let signed = query.signed(&request.method, signature)?;
    let sandboxes = door.app.control.list(false).await.ok()?;
    let now = Timestamp::now();
    sandboxes.iter().map(|sandbox| sandbox.id).find(|id| door.keys.is_signed(*id, signed, now))
}

/// The query of `/files`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct FileQuery {
    pub(super) path: Option<String>,
    pub(super) username: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) signature_expiration: Option<i64>,
}

impl FileQuery {
    /// Nothing, where it cannot be read as one.
    pub(super) fn of(request: &Parts) -> Option<Self> {
        let query = axum::extract::Query::<Self>::try_from_uri(&request.uri).ok()?;
        (request.uri.path() == "/files").then_some(query.0)
    }

    pub(super) fn signed<'a>(&'a self, method: &Method, signature: &'a str) -> Option<Signed<'a>> {
        let operation = match *method {
            Method::GET => Operation::Read,
            Method::POST => Operation::Write,
            _ => return None,
        };
        let (path, user) = (self.path.as_deref().unwrap_or(""), self.username.as_deref().unwrap_or(""));
        Some(Signed { path, operation, user, expires: self.signature_expiration, signature })
    }
}

impl IntoResponse for NotRunning {
    fn into_response(self) -> Response {
        let status = StatusCode::BAD_GATEWAY;
        let body = Body { sandbox_id: &self.id, message: "The sandbox was not found", code: status.as_u16() };
        (status, Json(body)).into_response()
    }
}

/// The port at which E2B's own daemon listens in a sandbox.
pub(super) const ENVD: u16 = 49983;
/// The port of the code interpreter in E2B's template of that name.
const INTERPRETER: u16 = 49999;
const SANDBOX_ID: HeaderName = HeaderName::from_static("e2b-sandbox-id");
const SANDBOX_PORT: HeaderName = HeaderName::from_static("e2b-sandbox-port");
const ACCESS_TOKEN: HeaderName = HeaderName::from_static("x-access-token");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_a_port_and_a_sandbox() {
        let id = SandboxId::from_bits(5).to_string();
        let named = |host: &str| first_label(host);
        assert_eq!(named(&format!("3000-{id}.localhost:80")), Some(Named { id: id.clone(), port: 3000 }));
        for other in
            ["localhost:80", "127.0.0.1", "3000-x.localhost", "a-b.c", &format!("70000-{id}.localhost"), &id]
        {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn headers_name_a_sandbox_only_where_the_host_names_none() {
        let [one, other] = [5, 6].map(|bits| SandboxId::from_bits(bits).to_string());
        let asked = |host: &str| {
            let builder = axum::http::Request::get("/").header(HOST, host);
            let request = builder.header(SANDBOX_ID, &other).header(SANDBOX_PORT, "80").body(()).unwrap();
            named(&request.into_parts().0)
        };
        assert_eq!(asked(&format!("3000-{one}.localhost:80")), Some(Named { id: one, port: 3000 }));
        assert_eq!(asked("127.0.0.1:80"), Some(Named { id: other.clone(), port: 80 }));
    }
}
