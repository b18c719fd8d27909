//! What a sandbox changed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use model::diff::Diff;

use super::App;
use super::body::Which;
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const QUERY: &[Param] = &[PATH];

pub(super) async fn diff(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Json<Diff>, Refusal> {
    let query = query.only(QUERY)?;
    Ok(Json(app.control.diff(&which, paths(&query)?).await?))
}

fn paths(query: &Query) -> Result<Vec<PathBuf>, Refusal> {
    let paths = query.all_bytes(PATH.name).map(|path| match path.first() {
        Some(b'/') => Ok(PathBuf::from(OsStr::from_bytes(path))),
        Some(_) | None => Err(Refusal::bad_request("`path` is not absolute")),
    });
    paths.collect()
}

const PATH: Param = Param {
    name: "path",
    kind: ParamKind::Texts,
    about: "Absolute, inside the sandbox: only what is at or below it (repeatable)",
};
