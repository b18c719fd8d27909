//! Ports of sandboxes that are reached from this machine.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use model::port::{Port, PortRequest};

use super::App;
use super::body::{Input, Which};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;

pub(super) const LIST: &[Param] =
    &[Param { name: "sandbox", kind: ParamKind::Text, about: "Only those of this sandbox" }];

pub(super) async fn open(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<PortRequest>,
) -> Result<(StatusCode, Json<Port>), Refusal> {
    Ok((StatusCode::CREATED, Json(app.gateway.ports().open(&which, &request).await?)))
}

pub(super) async fn list(State(app): State<App>, query: Query) -> Result<Json<Vec<Port>>, Refusal> {
    let query = query.only(LIST)?;
    let sandbox = match query.text("sandbox")? {
        Some(which) => Some(app.control.get(which).await?.id),
        None => None,
    };
    Ok(Json(app.gateway.ports().list(sandbox)))
}

pub(super) async fn close(
    State(app): State<App>,
    Path((which, port)): Path<(String, u16)>,
) -> Result<Json<Vec<Port>>, Refusal> {
    Ok(Json(app.gateway.ports().close(&which, port).await?))
}
