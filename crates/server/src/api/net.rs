//! What sandboxes may reach, and what they tried to.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use control::Requests;
use futures_util::{Stream, stream};
use model::Sandbox;
use model::given::Given;
use model::request::{NetChange, Request};

use super::App;
use super::body::{Input, Which};
use super::live::{self, Form, Numbered};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const QUERY: &[Param] = &[
    Param { name: "sandbox", kind: ParamKind::Text, about: "Only those of this sandbox" },
    Param { name: "denied", kind: ParamKind::Flag, about: "Only those that were denied" },
    Param {
        name: "host",
        kind: ParamKind::Text,
        about: "Only those to this name, to one below it, or to this address",
    },
    Param { name: "after", kind: ParamKind::Number, about: "Only those of a greater number, from there on" },
    Param {
        name: "follow",
        kind: ParamKind::Flag,
        about: "Go on with what is tried next, and with what becomes of it",
    },
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

pub(super) async fn list(
    State(app): State<App>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = query.only(QUERY)?;
    let sandbox = match query.text("sandbox")? {
        Some(which) => Some(app.control.get(which).await?.id),
        None => None,
    };
    let after = match query.number("after")? {
        Some(after) => Some(after),
        None => live::last_event_id(&headers)?,
    };
    let which = Requests {
        after,
        limit: query.number("limit")?.unwrap_or(PAGE).min(PAGE),
        sandbox,
        denied: query.flag("denied")?.unwrap_or(false),
        host: query.text("host")?.map(str::to_ascii_lowercase),
    };
    let form = Form::accepted(&headers);
    if query.flag("follow")?.unwrap_or(form == Form::Events) {
        return Ok(form.answer(follow(&app, which)));
    }
    Ok(Json(app.gateway.requests(which).await?).into_response())
}

/// What was tried and is tried, until the daemon ends.
fn follow(app: &App, which: Requests) -> impl Stream<Item = Request> + Send + use<> {
    stream::unfold((app.gateway.follow(which), app.stop.clone()), async |(mut following, stop)| {
        let next = tokio::select! {
            next = following.next() => next,
            () = stop.requested() => return None,
        };
        match next {
            Ok(request) => Some((request?, (following, stop))),
            Err(problem) => {
                tracing::error!(?problem, "failed to read requests for a follower");
                None
            }
        }
    })
}

impl Numbered for Request {
    fn number(&self) -> u64 {
        self.id
    }

    fn kind(&self) -> &str {
        "request"
    }
}

const PAGE: usize = 1000;

pub(super) async fn given(State(app): State<App>, Which(which): Which) -> Result<Json<Given>, Refusal> {
    Ok(Json(app.gateway.given(&which).await?))
}
