//! `zeno events`.

use model::event::Event;

use crate::args::look::Events;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};
use crate::render;

pub(crate) async fn events(typed: &Events, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let mut after = typed.after.unwrap_or(0);
    if typed.follow {
        let mut lines = api.follow_events(after).await?;
        while let Some(line) = lines.next().await? {
            show(&serde_json::from_slice(&line).map_err(Failure::Decode)?, invocation).await?;
        }
        return Ok(DONE);
    }
    loop {
        let page = api.events(after).await?;
        let Some(last) = page.last() else { return Ok(DONE) };
        after = last.sequence;
        for event in &page {
            show(event, invocation).await?;
        }
    }
}

/// One line each, in JSON too, so that both can be followed.
async fn show(event: &Event, invocation: &Invocation) -> Result<(), Failure> {
    let line = match invocation.form {
        Form::Json => serde_json::to_string(event).map_err(Failure::Encode)? + "\n",
        Form::People => render::events::event(event, invocation.stdout_paint()),
    };
    output::pass_on(Sink::Stdout, line.as_bytes()).await
}
