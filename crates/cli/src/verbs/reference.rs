//! `zeno reference`, for the one who generates the documentation.

use crate::failure::{DONE, Failure};

pub(crate) fn reference() -> Result<u8, Failure> {
    crate::output::answer(&crate::reference_markdown())?;
    Ok(DONE)
}
