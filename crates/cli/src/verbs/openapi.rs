//! `zeno openapi`.

use crate::failure::{DONE, Failure};

/// Needs no daemon: the document is this program's own.
pub(crate) fn openapi() -> Result<u8, Failure> {
    let text = serde_json::to_string_pretty(&server::openapi()).map_err(Failure::Encode)? + "\n";
    crate::output::answer(&text)?;
    Ok(DONE)
}
