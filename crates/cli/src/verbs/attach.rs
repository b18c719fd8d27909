//! `zeno attach`.

use super::exec::exit_code;
use crate::args::exec::Attach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::request::Streams;
use crate::session::{self, Topic};
use crate::terminal::Terminals;

pub(crate) async fn attach(typed: &Attach, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let execs = api.execs(&typed.sandbox).await?;
    // Whether keys go through raw depends on what the command was started on, not on our own ends alone.
    let on_terminal = execs.iter().any(|exec| exec.id == typed.exec && exec.tty);
    let tty = on_terminal.then(|| Terminals::look().window_or_default());
    let streams = Streams { tty, stdin: true };
    let conversation = api.attach(&typed.sandbox, typed.exec).await?;
    let ending = session::talk(conversation, Topic::Joined, streams, invocation.form, &mut None).await?;
    Ok(exit_code(&ending))
}
