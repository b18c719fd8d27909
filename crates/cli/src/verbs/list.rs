//! `zeno list`.

use jiff::Timestamp;

use crate::args::look::List;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::render::list as render;

pub(crate) async fn list(typed: &List, invocation: &Invocation) -> Result<u8, Failure> {
    let sandboxes = invocation.api().await?.list(typed.all).await?;
    let home = invocation.environment.home.as_deref();
    invocation.answer(&sandboxes, |paint| {
        if typed.quiet {
            render::ids(&sandboxes)
        } else {
            render::list(&sandboxes, home, Timestamp::now(), paint)
        }
    })?;
    if sandboxes.is_empty() && !typed.quiet && invocation.form == Form::People {
        output::note("no sandboxes yet: `zeno create` makes one\n");
    }
    Ok(DONE)
}
