//! `zeno verdicts`.

use jiff::Timestamp;

use crate::args::verify::Verdicts;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::render::verdict as render;

pub(crate) async fn verdicts(typed: &Verdicts, invocation: &Invocation) -> Result<u8, Failure> {
    let verdicts = invocation.api().await?.verdicts(typed.sandbox.as_ref()).await?;
    invocation.answer(&verdicts, |paint| render::list(&verdicts, Timestamp::now(), paint))?;
    if verdicts.is_empty() && invocation.form == Form::People {
        output::note("no verdicts yet: `zeno verify SANDBOX` gives one\n");
    }
    Ok(DONE)
}
