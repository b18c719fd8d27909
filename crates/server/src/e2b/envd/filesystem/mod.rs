//! `filesystem.Filesystem`: what files and folders are, and what becomes of them.

mod watch;
mod watchers;
mod wire;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use model::files::{Entry, FileOp};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::inside::{Files, path};
use super::{one, streamed, user};
use crate::e2b::E2b;
use crate::e2b::connect::{self, Error, Messages};
use crate::e2b::meant::Inside;
use watch::{Changes, told};
use wire::{
    EntryInfo, EntryResponse, EventsResponse, ListRequest, ListResponse, MoveRequest, PathRequest,
    WatchRequest, WatcherId,
};

pub(super) use watchers::Watchers;

pub(super) async fn stat(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let found = async {
        let (user, PathRequest { path: text }) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        entry(files.ask(&FileOp::Entry { path: path(&text)? }).await?)
    };
    one(found.await)
}

pub(super) async fn list_dir(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let listed = async {
        let (user, ListRequest { path: text, depth }) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        let entries = files.entries(path(&text)?, depth.max(1)).await?;
        Ok(ListResponse { entries: entries.into_iter().map(EntryInfo::from).collect() })
    };
    one(listed.await)
}

pub(super) async fn make_dir(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let made = async {
        let (user, PathRequest { path: text }) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        entry(files.ask(&FileOp::NewDir { path: path(&text)? }).await?)
    };
    one(made.await)
}

pub(super) async fn rename(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let moved = async {
        let (user, MoveRequest { source, destination }) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        entry(files.ask(&FileOp::Move { from: path(&source)?, to: path(&destination)? }).await?)
    };
    one(moved.await)
}

pub(super) async fn remove(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let removed = async {
        let (user, PathRequest { path: text }) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        files.ask::<IgnoredAny>(&FileOp::Clear { path: path(&text)? }).await?;
        Ok(nothing())
    };
    one(removed.await)
}

pub(super) async fn watch_dir(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let watching = async {
        let user = user(request.headers())?;
        let (pause, timeout) = (connect::keepalive(request.headers()), connect::timeout(request.headers()));
        let wanted: WatchRequest = Messages::only(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        let changes = Changes::of(&files, &wanted).await?;
        Ok(told(changes, pause, timeout, door.app.stop.clone()))
    };
    streamed(watching.await)
}

pub(super) async fn create_watcher(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    Extension(watchers): Extension<Watchers>,
    request: Request,
) -> Response {
    let created = async {
        let (user, wanted): (_, WatchRequest) = asked(request).await?;
        let files = Files { door: &door, sandbox: inside.sandbox.id, user: user.as_deref() };
        let changes = Changes::of(&files, &wanted).await?;
        Ok(WatcherId { watcher_id: watchers.begin(inside.sandbox.id, changes)? })
    };
    one(created.await)
}

pub(super) async fn watcher_events(
    Extension(inside): Extension<Inside>,
    Extension(watchers): Extension<Watchers>,
    request: Request,
) -> Response {
    let taken = async {
        let WatcherId { watcher_id } = connect::message(request).await?;
        let changes = watchers.take(inside.sandbox.id, &watcher_id)?;
        Ok(EventsResponse { events: changes.into_iter().map(Into::into).collect() })
    };
    one(taken.await)
}

pub(super) async fn remove_watcher(
    Extension(inside): Extension<Inside>,
    Extension(watchers): Extension<Watchers>,
    request: Request,
) -> Response {
    let removed = async {
        let WatcherId { watcher_id } = connect::message(request).await?;
        watchers.remove(inside.sandbox.id, &watcher_id)?;
        Ok(nothing())
    };
    one(removed.await)
}

/// The user that a call is made as, and its message.
async fn asked<T: DeserializeOwned>(request: Request) -> Result<(Option<String>, T), Error> {
    let user = user(request.headers())?;
    Ok((user, connect::message(request).await?))
}

fn entry(entry: Entry) -> Result<EntryResponse, Error> {
    Ok(EntryResponse { entry: entry.into() })
}

/// The message without fields.
fn nothing() -> Value {
    json!({})
}
