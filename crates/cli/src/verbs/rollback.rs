//! `zeno rollback`.

use model::snapshot::RollbackRequest;

use crate::args::snapshot::Rollback;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words;

pub(crate) async fn rollback(typed: &Rollback, invocation: &Invocation) -> Result<u8, Failure> {
    let request = RollbackRequest { snapshot: typed.snapshot.as_ref().map(ToString::to_string) };
    let api = invocation.api().await?;
    let sandbox = Waiting::begin("rolling back").watch(api.rollback(&typed.sandbox, &request)).await?;
    invocation.answer(&sandbox, |_| format!("{}  {}\n", words::name(&sandbox), sandbox.state))?;
    Ok(DONE)
}
