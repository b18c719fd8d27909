//! What happened, as an array, as lines, or as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use model::event::Event;

use super::App;
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::route::LINES;
use crate::line;

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
        None => last_event_id(&headers)?.unwrap_or(0),
    };
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let wants_sse = accepts.contains("text/event-stream");
    if query.flag("follow")?.unwrap_or(wants_sse) {
        let events = follow(&app, after);
        return Ok(if wants_sse {
            let events = events.map(|event| Ok::<_, Infallible>(as_sse(&event)));
            Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
        } else {
            let lines = events.map(|event| Ok::<_, Infallible>(line::encode(&event)));
            ([(CONTENT_TYPE, LINES)], Body::from_stream(lines)).into_response()
        });
    }
    let limit = query.number("limit")?.unwrap_or(PAGE).min(PAGE);
    let events = app.control.events(after, limit).await?;
    Ok(if wants_sse {
        let events = stream::iter(events).map(|event| Ok::<_, Infallible>(as_sse(&event)));
        Sse::new(events).into_response()
    } else {
        Json(events).into_response()
    })
}

/// What a browser sends when it comes back after a break.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    match value.to_str().map(str::parse) {
        Ok(Ok(id)) => Ok(Some(id)),
        Ok(Err(_)) | Err(_) => Err(Refusal::bad_request("Last-Event-ID is not a number")),
    }
}

fn as_sse(event: &Event) -> sse::Event {
    let data = serde_json::to_string(event).expect("wire types cannot fail to serialise");
    sse::Event::default().id(event.sequence.to_string()).event(&event.kind).data(data)
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
const HEARTBEAT: Duration = Duration::from_secs(15);
