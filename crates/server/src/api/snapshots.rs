//! Snapshots: made, listed, removed, gone back to, made sandboxes of.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::refresh::{RefreshRequest, Refreshed};
use model::sandbox::{Actor, Sandbox};
use model::snapshot::{
    ForkRequest, Forks, Garbage, RestoreRequest, RollbackRequest, Snapshot, SnapshotRequest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::{Input, Which};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const LIST: &[Param] = &[Param {
    name: "sandbox",
    kind: ParamKind::Text,
    about: "Only those made of this sandbox: its id, or the name it had",
}];

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Collect {
    /// Only say what would be removed.
    pub dry_run: bool,
}

pub(super) async fn make(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<SnapshotRequest>,
) -> Result<(StatusCode, Json<Snapshot>), Refusal> {
    Ok((StatusCode::CREATED, Json(app.control.snapshot(&which, request).await?)))
}

pub(super) async fn list(State(app): State<App>, query: Query) -> Result<Json<Vec<Snapshot>>, Refusal> {
    let query = query.only(LIST)?;
    let of = query.text("sandbox")?;
    Ok(Json(app.control.snapshots(of).await?))
}

pub(super) async fn show(State(app): State<App>, Which(which): Which) -> Result<Json<Snapshot>, Refusal> {
    Ok(Json(app.control.get_snapshot(&which).await?))
}

pub(super) async fn remove(State(app): State<App>, Which(which): Which) -> Result<Json<Snapshot>, Refusal> {
    Ok(Json(app.control.remove_snapshot(&which, Actor::Adm).await?))
}

pub(super) async fn refresh(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<RefreshRequest>,
) -> Result<Json<Refreshed>, Refusal> {
    Ok(Json(app.control.refresh(&which, request).await?))
}

pub(super) async fn rollback(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<RollbackRequest>,
) -> Result<Json<Sandbox>, Refusal> {
    Ok(Json(app.control.rollback(&which, request).await?))
}

pub(super) async fn restore(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<RestoreRequest>,
) -> Result<(StatusCode, Json<Sandbox>), Refusal> {
    Ok((StatusCode::CREATED, Json(app.control.restore(&which, request).await?)))
}

pub(super) async fn fork(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<ForkRequest>,
) -> Result<Json<Forks>, Refusal> {
    Ok(Json(app.control.fork(&which, request).await?))
}

pub(super) async fn collect(
    State(app): State<App>,
    Input(Collect { dry_run }): Input<Collect>,
) -> Result<Json<Garbage>, Refusal> {
    Ok(Json(app.control.collect_garbage(dry_run).await?))
}
