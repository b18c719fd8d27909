//! `zeno restore`.

use model::snapshot::RestoreRequest;

use crate::args::sandbox::labels;
use crate::args::snapshot::Restore;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words;

pub(crate) async fn restore(typed: &Restore, invocation: &Invocation) -> Result<u8, Failure> {
    let request = RestoreRequest {
        name: typed.name.clone(),
        labels: labels(&typed.labels),
        actor: invocation.actor()?,
        ..RestoreRequest::default()
    };
    let api = invocation.api().await?;
    let sandbox = Waiting::begin("making the sandbox").watch(api.restore(&typed.snapshot, &request)).await?;
    invocation.answer(&sandbox, |_| words::name(&sandbox) + "\n")?;
    Ok(DONE)
}
