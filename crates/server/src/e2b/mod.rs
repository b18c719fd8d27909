//! The E2B door: what E2B's SDKs speak, served by zeno's own verbs.
//!
//! Two protocols share the TCP port with the native API. The *control plane* (`/sandboxes`, `/snapshots`, ...) is REST with an API key.
//! *Traffic* is what the SDKs say to one sandbox; it names the sandbox by a header, by the Host, by its token or by a signature
//! ([`meant`]), and goes to a port of it: 49983 is the daemon that E2B runs in its sandboxes ([`envd`]), which here is this
//! process; 49999 is the code interpreter; every other port is a service in the sandbox itself.
//!
//! A handler parses, calls one verb of `control` and renders. Never stores anything: tokens are derived from the daemon's own, what
//! E2B wants remembered of a sandbox is in its labels. What is not supported is an error that says so, never a made-up success.

mod connect;
mod control;
mod envd;
mod failure;
mod interpreter;
mod keys;
mod labels;
mod meant;
mod traffic;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use model::exec::Variable;
use model::{Code, Problem};
use tower::ServiceExt;

use crate::api::{App, Token, door};
use crate::daemon::Listening;
use control::Recent;
use envd::Sessions;
use keys::Keys;
use meant::{Gate, Inside, Meant};
use traffic::Tunnels;

pub(crate) use interpreter::Interpreters;

/// What the door's handlers work on. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct E2b {
    app: App,
    keys: Keys,
    sessions: Sessions,
    recent: Arc<Recent>,
    interpreters: Interpreters,
    tunnels: Tunnels,
    /// Where the ports of sandboxes are found: `PORT-ID.` before it is a URL's host.
    domain: String,
}

impl E2b {
    /// `port` is where this daemon listens on loopback. The interpreters are the same wherever it does.
    pub(crate) fn new(app: App, token: &Token, port: u16, interpreters: Interpreters) -> Self {
        let keys = Keys::of(token);
        let (sessions, recent, tunnels) = Default::default();
        Self { app, keys, sessions, recent, interpreters, tunnels, domain: format!("localhost:{port}") }
    }
}

/// What E2B's SDKs read of their environment, so that they come here.
pub(crate) fn variables(listening: &Listening) -> Result<Vec<Variable>, Problem> {
    let Some(address) = listening.addresses().first().copied() else {
        return Err(Problem::new(
            Code::NotReady,
            "the daemon does not listen on TCP, and E2B's SDKs speak nothing else",
        )
        .hint("zeno daemon --listen 127.0.0.1:7070"));
    };
    let token = listening.token().map_err(|error| Problem::from_error(Code::Internal, &error))?;
    let url = format!("http://{address}");
    let variables =
        [("E2B_API_KEY", keys::api_key(&token)), ("E2B_API_URL", url.clone()), ("E2B_SANDBOX_URL", url)];
    let variable =
        |(name, value): (&str, String)| Variable { name: name.into(), value: value.as_str().into() };
    Ok(variables.into_iter().map(variable).collect())
}

/// The native API with this door before it.
pub(crate) fn before(native: Router, door: E2b) -> Router {
    let control = control::routes().with_state(door.clone());
    let envd = envd::routes().with_state(door.clone());
    let interpreter = interpreter::routes().with_state(door.clone());
    let doors = Doors { door, control, envd, interpreter };
    native.layer(middleware::from_fn_with_state(doors, divide))
}

#[derive(Clone, Debug)]
struct Doors {
    door: E2b,
    control: Router,
    envd: Router,
    interpreter: Router,
}

/// Sends a request to whom it is for.
async fn divide(State(doors): State<Doors>, request: Request, next: Next) -> Response {
    // A body cannot be looked at by several threads, and what is asked meanwhile needs only the head.
    let (head, body) = request.into_parts();
    let meant = meant::of(&doors.door, &head).await;
    let request = Request::from_parts(head, body);
    match meant {
        Ok(Meant::Nobody) if control::is_for(request.uri().path()) => {
            let admitted = door::admit_local(&request).map_err(failure::Failure::from);
            match admitted.and_then(|()| doors.door.keys.admit(request.headers())) {
                Ok(()) => infallible(doors.control.oneshot(request).await),
                Err(failure) => failure.into_response(),
            }
        }
        Ok(Meant::Nobody) => next.run(request).await,
        Ok(Meant::Inside(inside, gate)) => {
            let admitted = match gate {
                Gate::Envd | Gate::Interpreter => door::admit_below(&request),
                Gate::Service(_) => door::admit_own(&request),
            };
            match admitted {
                Ok(()) => doors.inside(*inside, gate, request).await,
                Err(problem) => failure::Failure::from(problem).into_response(),
            }
        }
        Err(not_there) => not_there.into_response(),
    }
}

impl Doors {
    /// What is said to one sandbox.
    async fn inside(self, inside: Inside, gate: Gate, mut request: Request) -> Response {
        let admitted = match gate {
            // It asks for a token of its own.
            Gate::Envd => Ok(()),
            Gate::Interpreter | Gate::Service(_) => {
                traffic::admit(&self.door, &inside.sandbox, request.headers())
            }
        };
        if let Err(failure) = admitted {
            return failure.into_response();
        }
        let router = match gate {
            Gate::Envd => self.envd,
            Gate::Interpreter => self.interpreter,
            Gate::Service(port) => return traffic::pass(&self.door, inside.sandbox.id, port, request).await,
        };
        request.extensions_mut().insert(inside);
        infallible(router.oneshot(request).await)
    }
}

fn infallible(answer: Result<Response, std::convert::Infallible>) -> Response {
    match answer {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
