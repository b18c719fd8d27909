//! What sandboxes may reach, and what they tried to.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use control::Requests;
use futures_util::{Stream, StreamExt, stream};
use model::given::Given;
use model::request::{NetChange, Request};
use model::{Sandbox, SandboxId};
use tokio::sync::broadcast::error::RecvError;

use super::App;
use super::body::{Input, Which};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::route::LINES;
use crate::line;

pub(super) const QUERY: &[Param] = &[
    Param { name: "sandbox", kind: ParamKind::Text, about: "Only those of this sandbox" },
    Param { name: "denied", kind: ParamKind::Flag, about: "Only those that were denied" },
    Param { name: "host", kind: ParamKind::Text, about: "Only those to this name, or to one below it" },
    Param { name: "after", kind: ParamKind::Number, about: "Only those of a greater number, from there on" },
    Param { name: "follow", kind: ParamKind::Flag, about: "Go on with what is tried next, as lines" },
    Param { name: "limit", kind: ParamKind::Number, about: "At most so many; 1000 if not given" },
];

pub(super) async fn change(
    State(app): State<App>,
    Which(which): Which,
    Input(change): Input<NetChange>,
) -> Result<Json<Sandbox>, Refusal> {
    Ok(Json(app.gateway.change(&which, &change).await?))
}

pub(super) async fn show(State(app): State<App>, Path(id): Path<u64>) -> Result<Json<Request>, Refusal> {
    Ok(Json(app.gateway.request(id).await?))
}

pub(super) async fn list(State(app): State<App>, query: Query) -> Result<Response, Refusal> {
    let query = query.only(QUERY)?;
    let sandbox = match query.text("sandbox")? {
        Some(which) => Some(app.control.get(which).await?.id),
        None => None,
    };
    let which = Requests {
        after: query.number("after")?.unwrap_or(0),
        limit: query.number("limit")?.unwrap_or(PAGE).min(PAGE),
        sandbox,
        denied: query.flag("denied")?.unwrap_or(false),
        name: query.text("host")?.map(str::to_ascii_lowercase),
    };
    if !query.flag("follow")?.unwrap_or(false) {
        return Ok(Json(app.gateway.requests(which).await?).into_response());
    }
    let lines = follow(app, which).map(|request| Ok::<_, Infallible>(line::encode(&request)));
    Ok(([(CONTENT_TYPE, LINES)], Body::from_stream(lines)).into_response())
}

/// What is tried from now on, until the daemon ends.
fn follow(app: App, which: Requests) -> impl Stream<Item = Request> + Send {
    let live = app.gateway.subscribe();
    stream::unfold((live, app.stop, which), async |(mut live, stop, which)| {
        loop {
            let next = tokio::select! {
                next = live.recv() => next,
                () = stop.requested() => return None,
            };
            match next {
                Ok(request) if is_wanted(&which, &request) => return Some((request, (live, stop, which))),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    tracing::debug!(missed, "a follower of requests is too slow")
                }
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

fn is_wanted(which: &Requests, request: &Request) -> bool {
    let of = |id: SandboxId| request.sandbox == id;
    let named = |name: &String| {
        request.name.as_ref().is_some_and(|own| own == name || own.ends_with(&format!(".{name}")))
    };
    which.sandbox.is_none_or(of)
        && (!which.denied || request.verdict == model::net::Verdict::Deny)
        && which.name.as_ref().is_none_or(named)
}

const PAGE: usize = 1000;

pub(super) async fn given(State(app): State<App>, Which(which): Which) -> Result<Json<Given>, Refusal> {
    Ok(Json(app.gateway.given(&which).await?))
}
