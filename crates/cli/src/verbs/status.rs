//! `zeno status`.

use jiff::Timestamp;

use crate::args::look::Status;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render;

pub(crate) async fn status(typed: &Status, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let status = Waiting::begin("comparing with the real machine").watch(api.status(&typed.sandbox)).await?;
    let home = invocation.environment.home.as_deref();
    invocation.answer(&status, |paint| render::status::status(&status, home, Timestamp::now(), paint))?;
    Ok(DONE)
}
