//! `zeno execs`.

use crate::args::exec::Execs;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::render;

pub(crate) async fn execs(typed: &Execs, invocation: &Invocation) -> Result<u8, Failure> {
    let execs = invocation.api().await?.execs(&typed.sandbox).await?;
    invocation.answer(&execs, |paint| render::execs::execs(&execs, paint))?;
    Ok(DONE)
}
