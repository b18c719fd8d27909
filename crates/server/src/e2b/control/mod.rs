//! The control plane: sandboxes, snapshots, templates.

mod body;
mod create;
mod life;
mod list;
mod logs;
mod network;
mod pages;
mod snapshots;
mod templates;
mod wire;

use axum::Router;
use axum::extract::Request;
use axum::routing::{delete, get, post, put};

use super::E2b;
use super::failure::Failure;

pub(super) use create::Recent;
pub(super) use life::wake;
pub(super) use list::measured;

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/sandboxes", post(create::old).get(list::all))
        .route("/v2/sandboxes", post(create::new).get(list::pages))
        .route("/sandboxes/{id}", get(list::one).delete(life::kill))
        .route("/sandboxes/{id}/connect", post(life::connect))
        .route("/v2/sandboxes/{id}/connect", post(life::connect))
        .route("/sandboxes/{id}/resume", post(life::resume))
        .route("/sandboxes/{id}/pause", post(life::pause))
        .route("/sandboxes/{id}/timeout", post(life::timeout))
        .route("/sandboxes/{id}/refreshes", post(life::refresh))
        .route("/sandboxes/{id}/metrics", get(list::metrics))
        .route("/sandboxes/{id}/logs", get(logs::old))
        .route("/v2/sandboxes/{id}/logs", get(logs::new))
        .route("/sandboxes/{id}/network", put(network::replace))
        .route("/sandboxes/{id}/snapshots", post(snapshots::make))
        .route("/sandboxes/{id}/fork", post(snapshots::fork))
        .route("/snapshots", get(snapshots::list))
        .route("/templates", get(templates::list))
        .route("/templates/{id}", delete(templates::remove))
        .route("/templates/aliases/{name}", get(templates::alias))
        .fallback(no_such_route)
}

/// Is a path one of E2B's control plane? All of them, so that what is missing here is told in its own form.
pub(super) fn is_for(path: &str) -> bool {
    let bare = ["/v2/", "/v3/"].iter().find_map(|version| path.strip_prefix(version));
    let first = bare.unwrap_or(path.trim_start_matches('/')).split('/').next();
    first.is_some_and(|first| FAMILIES.contains(&first))
}

async fn no_such_route(request: Request) -> Failure {
    Failure::unsupported(&format!("`{} {}` of E2B's API", request.method(), request.uri().path()))
}

const FAMILIES: &[&str] = &[
    "sandboxes",
    "snapshots",
    "templates",
    "volumes",
    "volumecontent",
    "secrets",
    "events",
    "teams",
    "nodes",
    "files",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_e2bs_and_what_is_ours() {
        for path in
            ["/sandboxes", "/v2/sandboxes/x/connect", "/v3/templates", "/templates/a%3Ab", "/events/webhooks"]
        {
            assert!(is_for(path), "{path}");
        }
        for path in ["/v1/sandboxes", "/healthz", "/mcp", "/", "/v2/", "/sandboxesx"] {
            assert!(!is_for(path), "{path}");
        }
    }
}
