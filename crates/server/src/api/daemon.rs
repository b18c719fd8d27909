//! The daemon itself: is it there, what can its machine do, and please end.

use std::net::SocketAddr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use model::Problem;
use model::doctor::Report;
use model::exec::Variable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::Input;
use super::door::Through;
use super::refusal::Refusal;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub version: String,
    pub pid: u32,
    /// Where it can be reached over TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub listen: Vec<SocketAddr>,
}

/// Where to be reached over TCP, too.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    #[schemars(with = "String")]
    pub address: SocketAddr,
}

pub(super) async fn health(State(app): State<App>) -> Json<Health> {
    Json(of(&app))
}

/// Only over the Unix socket: who has come in over TCP opens no further doors.
pub(super) async fn listen(
    State(app): State<App>,
    Extension(through): Extension<Through>,
    Input(Listen { address }): Input<Listen>,
) -> Result<Json<Health>, Refusal> {
    through.must_be_unix()?;
    app.listening.listen(&app, address).await.map_err(Problem::from)?;
    app.listening.remember().await.map_err(Problem::from)?;
    Ok(Json(of(&app)))
}

/// What E2B's SDKs need to know of this daemon, as variables. Only over the Unix socket: one of them opens the door.
pub(super) async fn e2b(
    State(app): State<App>,
    Extension(through): Extension<Through>,
) -> Result<Json<Vec<Variable>>, Refusal> {
    through.must_be_unix()?;
    Ok(Json(crate::e2b::variables(&app.listening)?))
}

fn of(app: &App) -> Health {
    Health { version: crate::VERSION.to_owned(), pid: std::process::id(), listen: app.listening.addresses() }
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
