//! What happened, as an array, as lines, or as server-sent events.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use model::event::Event;

use super::App;
use super::live::{self, Form, Numbered};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const QUERY: &[Param] = &[
    Param { name: "after", kind: ParamKind::Number, about: "Only events of a greater sequence" },
    Param { name: "follow", kind: ParamKind::Flag, about: "Go on with what happens next" },
    Param {
        name: "limit",
        kind: ParamKind::Number,
        about: "At most so many, without `follow`; 1000 if not given",
    },
];

pub(super) async fn events(
    State(app): State<App>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = query.only(QUERY)?;
    let after = match query.number("after")? {
        Some(after) => after,
        None => live::last_event_id(&headers)?.unwrap_or(0),
    };
    let form = Form::accepted(&headers);
    if query.flag("follow")?.unwrap_or(form == Form::Events) {
        return Ok(form.answer(follow(&app, after)));
    }
    let limit = query.number("limit")?.unwrap_or(PAGE).min(PAGE);
    let events = app.control.events(after, limit).await?;
    Ok(match form {
        Form::Events => {
            let events = stream::iter(events).map(|event| Ok::<_, Infallible>(live::as_event(&event)));
            Sse::new(events).into_response()
        }
        Form::Lines => Json(events).into_response(),
    })
}

impl Numbered for Event {
    fn number(&self) -> u64 {
        self.sequence
    }

    fn kind(&self) -> &str {
        &self.kind
    }
}

/// Everything after `after`, until the daemon ends.
fn follow(app: &App, after: u64) -> impl Stream<Item = Event> + Send + use<> {
    stream::unfold((app.control.follow(after), app.stop.clone()), async |(mut following, stop)| {
        let next = tokio::select! {
            next = following.next() => next,
            () = stop.requested() => return None,
        };
        match next {
            Ok(event) => Some((event?, (following, stop))),
            Err(problem) => {
                tracing::error!(?problem, "failed to read events for a follower");
                None
            }
        }
    })
}

const PAGE: usize = 1000;
