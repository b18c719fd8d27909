//! `zeno env`.

use crate::args::given::Env;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::render::given as render;

pub(crate) async fn env(typed: &Env, invocation: &Invocation) -> Result<u8, Failure> {
    if typed.sandbox.to_string() == E2B {
        let variables = invocation.api().await?.e2b().await?;
        invocation.answer(&variables, |_| render::exports(&variables))?;
        return Ok(DONE);
    }
    let given = invocation.api().await?.given(&typed.sandbox).await?;
    invocation.answer(&given, |paint| render::given(&given, paint))?;
    Ok(DONE)
}

/// A sandbox of this name is shown by its id.
const E2B: &str = "e2b";
