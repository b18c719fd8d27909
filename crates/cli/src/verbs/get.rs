//! `zeno get`.

use jiff::Timestamp;

use crate::args::look::Get;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::render;

pub(crate) async fn get(typed: &Get, invocation: &Invocation) -> Result<u8, Failure> {
    let sandbox = invocation.api().await?.sandbox(&typed.sandbox).await?;
    let home = invocation.environment.home.as_deref();
    invocation.answer(&sandbox, |paint| render::sandbox::sandbox(&sandbox, home, Timestamp::now(), paint))?;
    Ok(DONE)
}
