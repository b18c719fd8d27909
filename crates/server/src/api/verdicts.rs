//! Checks and what they said.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::Problem;
use model::verdict::{Verdict, VerifyRequest, VerifyStep};

use super::App;
use super::body::{Input, Which};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::steps::{Step, told};

pub(super) const LIST: &[Param] = &[Param {
    name: "sandbox",
    kind: ParamKind::Text,
    about: "Only those on states of this sandbox: its id, or the name it had",
}];

impl Step for VerifyStep {
    fn problem(problem: Problem) -> Self {
        Self::Problem { problem }
    }
}

pub(super) async fn verify(
    State(app): State<App>,
    Which(which): Which,
    Input(request): Input<VerifyRequest>,
) -> Result<Response, Refusal> {
    let App { lanes, stop, .. } = app;
    told(stop, |steps| async move {
        let verdict = lanes.verify(&which, request, &steps).await?;
        Ok(VerifyStep::Verdict { verdict: Box::new(verdict) })
    })
    .await
}

pub(super) async fn list(State(app): State<App>, query: Query) -> Result<Json<Vec<Verdict>>, Refusal> {
    let query = query.only(LIST)?;
    Ok(Json(app.lanes.verdicts(query.text("sandbox")?).await?))
}
