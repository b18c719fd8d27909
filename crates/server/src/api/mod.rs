//! The HTTP API: a table of routes, the router made from it, and the OpenAPI document made from it too.

mod body;
mod converse;
mod daemon;
mod diff;
pub(crate) mod door;
mod events;
pub(crate) mod execs;
pub(crate) mod files;
mod live;
mod log;
mod net;
pub(crate) mod openapi;
mod peer;
mod ports;
mod promotions;
mod query;
mod races;
mod refusal;
pub(crate) mod relay;
mod route;
mod sandboxes;
mod snapshots;
mod steps;
mod table;
mod verdicts;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use control::Control;
use lanes::Lanes;
use model::doctor::Report;
use model::{Code, Problem};
use tokio::sync::watch;
use xray::Gateway;

pub use crate::mcp::Opening;
pub(crate) use body::Input;
pub use daemon::{Health, Listen};
pub(crate) use door::Through;
pub use door::{Door, Token};
pub use execs::SignalRequest;
pub(crate) use peer::{NoPeer, ToMcp, taken};
pub(crate) use refusal::Refusal;
pub use sandboxes::Extend;
pub use snapshots::Collect;
pub(crate) use wire::Wire;

use crate::daemon::Listening;
use crate::mcp;

/// What the handlers work on.
#[derive(Clone, Debug)]
pub struct App {
    pub control: Control,
    pub lanes: Lanes,
    pub gateway: Gateway,
    pub doctor: Arc<Report>,
    pub stop: Stop,
    pub listening: Listening,
    /// Who comes in over MCP and HTTP may promote, although nobody can be asked there.
    pub allow_promote: bool,
}

/// The wish that the daemon end. Streams that would go on for ever watch it.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default stop would be one that nobody else holds")]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Returns once it is wished.
    pub async fn requested(&self) {
        let mut watching = self.0.subscribe();
        watching.wait_for(|wished| *wished).await.expect("self holds a sender");
    }
}

/// The whole API as seen through `door`.
pub fn router(app: App, door: Door) -> Router {
    let routes = match &door {
        Door::Unix => routes(),
        Door::Tcp { address, .. } => routes().route(mcp::PATH, mcp::service(app.clone(), *address)),
    };
    behind(door, routes.with_state(app))
}

fn routes() -> Router<App> {
    table::routes().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler))
}

/// What holds for every route: who may come in, and what every answer has.
fn behind(door: Door, router: Router) -> Router {
    let door = Arc::new(door);
    router
        .fallback(no_such_route)
        .layer(middleware::from_fn(move |request, next| door::guard(Arc::clone(&door), request, next)))
        .layer(middleware::from_fn(finish))
}

/// A problem as a response, for who has no handler of ours.
pub(crate) fn refused(problem: Problem) -> Response {
    Refusal::from(problem).into_response()
}

async fn no_such_route(request: Request) -> Refusal {
    let detail = format!("there is no `{}`", request.uri().path());
    Problem::new(Code::NotFound, detail).hint("GET /v1/openapi.json lists all there is").into()
}

/// What every response has in common: the version, and a problem as the body of a refused method.
async fn finish(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers().get(ALLOW).cloned();
        response = Refusal::method(&method, &path).into_response();
        response.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    }
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    response.headers_mut().insert(crate::VERSION_HEADER, HeaderValue::from_static(crate::VERSION));
    response
}

#[cfg(test)]
mod tests;
