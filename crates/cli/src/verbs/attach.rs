//! `zeno attach`.

use super::exec::exit_code;
use crate::args::exec::Attach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::request::Streams;
use crate::session::{self, Topic};
use crate::terminal::{Input, Terminals};

pub(crate) async fn attach(typed: &Attach, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let execs = api.execs(&typed.sandbox).await?;
    // Whether keys go through raw depends on what the command was started on, not on our own ends alone.
    let on_terminal = execs.iter().any(|exec| exec.id == typed.exec && exec.tty);
    let terminals = Terminals::look();
    let tty = on_terminal.then(|| terminals.window_or_default());
    // Who has nothing to say must not say that this is the end of all input: the command may have others to hear.
    let streams = Streams { tty, stdin: terminals.stdin != Input::Null };
    let conversation = api.attach(&typed.sandbox, typed.exec).await?;
    let topic = Topic::Joined(&typed.leave.detach_keys);
    let ending = session::talk(conversation, topic, streams, invocation.form, &mut None).await?;
    Ok(exit_code(&ending, &typed.sandbox))
}
