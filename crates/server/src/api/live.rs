//! What goes on for as long as somebody reads it: as lines, or as server-sent events for who accepts those.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde::Serialize;

use super::refusal::Refusal;
use super::route::LINES;
use crate::line;

/// One of a stream that somebody can come back to.
pub(super) trait Numbered: Serialize {
    fn number(&self) -> u64;

    /// What a browser listens for.
    fn kind(&self) -> &str;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Lines,
    Events,
}

impl Form {
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accepts.contains("text/event-stream") { Self::Events } else { Self::Lines }
    }

    /// What comes, for as long as it does.
    pub(super) fn answer<T: Numbered>(self, items: impl Stream<Item = T> + Send + 'static) -> Response {
        match self {
            Self::Lines => {
                let lines = items.map(|item| Ok::<_, Infallible>(line::encode(&item)));
                ([(CONTENT_TYPE, LINES)], Body::from_stream(lines)).into_response()
            }
            Self::Events => {
                let events = items.map(|item| Ok::<_, Infallible>(as_event(&item)));
                Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
            }
        }
    }
}

/// What a browser sends when it comes back after a break.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    match value.to_str().map(str::parse) {
        Ok(Ok(id)) => Ok(Some(id)),
        Ok(Err(_)) | Err(_) => Err(Refusal::bad_request("Last-Event-ID is not a number")),
    }
}

pub(super) fn as_event(item: &impl Numbered) -> sse::Event {
    let data = serde_json::to_string(item).expect("wire types cannot fail to serialise");
    sse::Event::default().id(item.number().to_string()).event(item.kind()).data(data)
}

const HEARTBEAT: Duration = Duration::from_secs(15);
