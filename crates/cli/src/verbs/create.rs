//! `zeno create`.

use model::Sandbox;
use model::sandbox::{CreateRequest, CreateStep};
use server::client::ClientError;

use crate::api::Api;
use crate::args::run::Create;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words;
use crate::request;

pub(crate) async fn create(typed: &Create, invocation: &Invocation) -> Result<u8, Failure> {
    let request = request::create(typed, &Caller::read(invocation)?)?;
    let api = invocation.api().await?;
    let sandbox = made(&api, &request).await?;
    invocation.answer(&sandbox, |_| words::name(&sandbox) + "\n")?;
    Ok(DONE)
}

/// Has a sandbox made, and shows how far that is if it takes long.
pub(super) async fn made(api: &Api, request: &CreateRequest) -> Result<Sandbox, Failure> {
    let mut waiting = Waiting::begin("making the sandbox");
    let mut lines = waiting.watch(api.create(request)).await?;
    while let Some(line) = waiting.watch(lines.next()).await? {
        match serde_json::from_slice(&line).map_err(Failure::Decode)? {
            CreateStep::Progress { progress } => waiting.report(&progress),
            CreateStep::Made { sandbox } => return Ok(*sandbox),
            CreateStep::Problem { problem } => return Err(ClientError::Problem(problem).into()),
        }
    }
    Err(Failure::BrokenOff)
}
