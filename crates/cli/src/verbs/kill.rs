//! `zeno kill`.

use crate::args::exec::Kill;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;

pub(crate) async fn kill(typed: &Kill, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    api.signal(&typed.sandbox, typed.exec, typed.signal).await?;
    Ok(DONE)
}
