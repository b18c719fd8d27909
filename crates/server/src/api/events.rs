//! What happened, as an array, as lines, or as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use control::Control;
use futures_util::{Stream, StreamExt, stream};
use model::Problem;
use model::event::Event;
use tokio::sync::broadcast;

use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::route::LINES;
use super::{App, Stop};
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
        let events = Following::new(app, after).into_stream();
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

/// A reader of the store that is woken by what is broadcast. The broadcast itself is not passed on: it can
/// overflow, and what was missed would then be missing.
struct Following {
    control: Control,
    stop: Stop,
    wake: broadcast::Receiver<Event>,
    after: u64,
    page: VecDeque<Event>,
}

impl Following {
    fn new(app: App, after: u64) -> Self {
        let wake = app.control.subscribe();
        Self { control: app.control, stop: app.stop, wake, after, page: VecDeque::new() }
    }

    fn into_stream(self) -> impl Stream<Item = Event> + Send {
        stream::unfold(self, async |mut following| {
            let event = following.next().await?;
            Some((event, following))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.after = event.sequence;
                return Some(event);
            }
            match self.control.events(self.after, PAGE).await {
                Ok(page) if page.is_empty() => self.wait().await?,
                Ok(page) => self.page = page.into(),
                Err(problem) => return log_end(&problem),
            }
        }
    }

    async fn wait(&mut self) -> Option<()> {
        tokio::select! {
            woken = self.wake.recv() => match woken {
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => Some(()),
                Err(broadcast::error::RecvError::Closed) => None,
            },
            () = self.stop.requested() => None,
        }
    }
}

fn log_end(problem: &Problem) -> Option<Event> {
    tracing::error!(?problem, "failed to read events for a follower");
    None
}

const PAGE: usize = 1000;
const HEARTBEAT: Duration = Duration::from_secs(15);
