//! Bringing what a sandbox changed into reality, and taking it back.

use axum::Json;
use axum::extract::State;
use model::promotion::{PromoteRequest, Promoted, Promotion, UndoRequest};

use super::App;
use super::body::{Input, Which};
use super::refusal::Refusal;

pub(super) async fn promote(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<PromoteRequest>,
) -> Result<Json<Promoted>, Refusal> {
    Ok(Json(app.lanes.promote(&which, request).await?))
}

pub(super) async fn list(State(app): State<App>) -> Result<Json<Vec<Promotion>>, Refusal> {
    Ok(Json(app.control.promotions().await?))
}

pub(super) async fn undo(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<UndoRequest>,
) -> Result<Json<Promotion>, Refusal> {
    Ok(Json(app.control.undo(Some(&which), request).await?))
}

pub(super) async fn undo_last(
    State(app): State<App>,
    Input(request): Input<UndoRequest>,
) -> Result<Json<Promotion>, Refusal> {
    Ok(Json(app.control.undo(None, request).await?))
}
