//! `zeno env`.

use crate::args::given::Env;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::render::given as render;

pub(crate) async fn env(typed: &Env, invocation: &Invocation) -> Result<u8, Failure> {
    let given = invocation.api().await?.given(&typed.sandbox).await?;
    invocation.answer(&given, |paint| render::given(&given, paint))?;
    Ok(DONE)
}
