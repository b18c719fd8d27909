//! `zeno create`.

use crate::args::run::Create;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words;
use crate::request;

pub(crate) async fn create(typed: &Create, invocation: &Invocation) -> Result<u8, Failure> {
    let request = request::create(typed, &Caller::read()?)?;
    let api = invocation.api().await?;
    let sandbox = Waiting::begin("making the sandbox").watch(api.create(&request)).await?;
    invocation.answer(&sandbox, |_| words::name(&sandbox) + "\n")?;
    Ok(DONE)
}
