//! What a sandbox changed: as JSON, or as a patch in pieces.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use model::Problem;
use model::diff::Detail;
use tokio::sync::mpsc::Receiver;

use super::App;
use super::body::Which;
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const QUERY: &[Param] = &[PATH, FROM, LINES, PATCH];
pub(super) const BETWEEN_QUERY: &[Param] = &[WITH, PATH, FROM, LINES, PATCH_BETWEEN];

pub(super) async fn diff(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Response, Refusal> {
    let query = query.only(QUERY)?;
    let (from, paths) = (query.text(FROM.name)?, paths(&query)?);
    if query.flag(PATCH.name)?.unwrap_or(false) {
        return patch(app.control.patch(&which, from, paths).await?).await;
    }
    let detail = detail(&query)?;
    Ok(Json(app.control.diff(&which, from, paths, detail).await?).into_response())
}

pub(super) async fn between(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Response, Refusal> {
    let query = query.only(BETWEEN_QUERY)?;
    let with = query.text(WITH.name)?.ok_or_else(|| Refusal::bad_request("`with` is missing"))?;
    let (from, paths) = (query.text(FROM.name)?, paths(&query)?);
    if query.flag(PATCH.name)?.unwrap_or(false) {
        if from.is_some() {
            return Err(Refusal::bad_request("`from` changes nothing about a patch from one to the other"));
        }
        return patch(app.control.patch_between(&which, with, paths).await?).await;
    }
    let detail = detail(&query)?;
    Ok(Json(app.control.between(&which, with, from, paths, detail).await?).into_response())
}

fn detail(query: &Query) -> Result<Detail, Refusal> {
    Ok(if query.flag(LINES.name)?.unwrap_or(false) { Detail::Lines } else { Detail::Paths })
}

/// The first piece decides whether it is a patch or a refusal. A problem later on ends the body without its end mark, so
/// that the caller does not take a part for the whole.
async fn patch(mut pieces: Receiver<Result<Vec<u8>, Problem>>) -> Result<Response, Refusal> {
    let first = pieces.recv().await.transpose()?;
    let body = stream::unfold((first, pieces), async |(first, mut pieces)| {
        let piece = match first {
            Some(first) => Some(Ok(first)),
            None => pieces.recv().await,
        };
        piece.map(|piece| (piece, (None, pieces)))
    });
    Ok(([(CONTENT_TYPE, PATCH_MEDIA)], Body::from_stream(body)).into_response())
}

fn paths(query: &Query) -> Result<Vec<PathBuf>, Refusal> {
    let paths = query.all_bytes(PATH.name).map(|path| match path.first() {
        Some(b'/') => Ok(PathBuf::from(OsStr::from_bytes(path))),
        Some(_) | None => Err(Refusal::bad_request("`path` is not absolute")),
    });
    paths.collect()
}

pub(super) const PATCH_MEDIA: &str = "text/x-diff";
const PATH: Param = Param {
    name: "path",
    kind: ParamKind::Texts,
    about: "Absolute, inside the sandbox: only what is at or below it (repeatable)",
};
const FROM: Param = Param {
    name: "from",
    kind: ParamKind::Text,
    about: "An earlier snapshot, by id or name: only what changed since",
};
const WITH: Param = Param {
    name: "with",
    kind: ParamKind::Text,
    about: "The other sandbox, or else the snapshot, by id or name (required)",
};
const LINES: Param = Param { name: "lines", kind: ParamKind::Flag, about: "Count lines that came and went" };
const PATCH: Param = Param {
    name: "patch",
    kind: ParamKind::Flag,
    about: "Answer with a patch of the workspace for `git apply` instead",
};
const PATCH_BETWEEN: Param = Param {
    about: "Answer with a patch for `git apply` that makes the other's workspace of the first's instead",
    ..PATCH
};
