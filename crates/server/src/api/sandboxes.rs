//! Sandboxes: make, list, show, and everything that moves one from state to state.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanes::Steps;
use model::Problem;
use model::sandbox::{CreateRequest, CreateStep, Sandbox, Status};
use model::units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::{Input, Which};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::steps::{STEPS, Step, told};

pub(super) const LIST: &[Param] =
    &[Param { name: "all", kind: ParamKind::Flag, about: "Those that were destroyed as well" }];

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    pub ttl: Span,
}

type Record = Result<Json<Sandbox>, Refusal>;

pub(super) async fn create(
    State(app): State<App>,
    query: Query,
    Input(request): Input<CreateRequest>,
) -> Result<Response, Refusal> {
    let App { control, stop, .. } = app;
    if !query.only(STEPS)?.flag("steps")?.unwrap_or(false) {
        let sandbox = control.create(request, &|_progress| ()).await?;
        return Ok((StatusCode::CREATED, Json(sandbox)).into_response());
    }
    let making = |steps: Steps<CreateStep>| async move {
        let tell = |progress| {
            // Whoever reads too slowly for one hears of the next.
            if steps.try_send(CreateStep::Progress { progress }).is_err() {
                tracing::trace!("a step was not told");
            }
        };
        let sandbox = control.create(request, &tell).await?;
        Ok(CreateStep::Made { sandbox: Box::new(sandbox) })
    };
    told(stop, making).await
}

impl Step for CreateStep {
    fn problem(problem: Problem) -> Self {
        Self::Problem { problem }
    }
}

pub(super) async fn list(State(app): State<App>, query: Query) -> Result<Json<Vec<Sandbox>>, Refusal> {
    let all = query.only(LIST)?.flag("all")?.unwrap_or(false);
    Ok(Json(app.control.list(all).await?))
}

pub(super) async fn show(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.get(&which).await?))
}

pub(super) async fn status(State(app): State<App>, Which(which): Which) -> Result<Json<Status>, Refusal> {
    Ok(Json(app.control.status(&which).await?))
}

pub(super) async fn destroy(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.destroy(&which).await?))
}

pub(super) async fn pause(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.pause(&which).await?))
}

pub(super) async fn resume(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.resume(&which).await?))
}

pub(super) async fn stop(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.stop(&which).await?))
}

pub(super) async fn start(State(app): State<App>, Which(which): Which) -> Record {
    Ok(Json(app.control.start(&which).await?))
}

pub(super) async fn extend(
    State(app): State<App>,
    Which(which): Which,
    Input(Extend { ttl }): Input<Extend>,
) -> Record {
    Ok(Json(app.control.extend(&which, ttl).await?))
}
