//! The daemon itself: is it there, what can its machine do, and please end.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::doctor::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub version: String,
    pub pid: u32,
}

pub(super) async fn health() -> Json<Health> {
    Json(Health { version: crate::VERSION.to_owned(), pid: std::process::id() })
}

pub(super) async fn openapi() -> Json<serde_json::Value> {
    Json(super::openapi::openapi())
}

pub(super) async fn doctor(State(app): State<App>) -> Json<Report> {
    Json(Report::clone(&app.doctor))
}

pub(super) async fn stop(State(app): State<App>) -> StatusCode {
    app.stop.request();
    StatusCode::ACCEPTED
}
