//! `zeno openapi`.

use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;

pub(crate) async fn openapi(invocation: &Invocation) -> Result<u8, Failure> {
    let document = invocation.api().await?.openapi().await?;
    let text = serde_json::to_string_pretty(&document).map_err(Failure::Encode)? + "\n";
    crate::output::answer(&text)?;
    Ok(DONE)
}
