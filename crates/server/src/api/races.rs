//! Races: run, and listed.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::Problem;
use model::race::{Race, RaceRequest, RaceStep};

use super::App;
use super::body::Input;
use super::refusal::Refusal;
use super::steps::{Step, told};

impl Step for RaceStep {
    fn problem(problem: Problem) -> Self {
        Self::Problem { problem }
    }
}

pub(super) async fn run(
    State(app): State<App>,
    Input(request): Input<RaceRequest>,
) -> Result<Response, Refusal> {
    let App { lanes, stop, .. } = app;
    told(stop, |steps| async move {
        let race = lanes.race(request, &steps).await?;
        Ok(RaceStep::Race { race: Box::new(race) })
    })
    .await
}

pub(super) async fn list(State(app): State<App>) -> Result<Json<Vec<Race>>, Refusal> {
    Ok(Json(app.lanes.races().await?))
}
