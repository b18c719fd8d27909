//! `zeno shell`.

use model::exec::Text;

use super::exec::{exit_code, folder_to_join};
use crate::args::exec::Shell;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::request::{self, Streams};
use crate::session::{self, Topic};
use crate::terminal::Terminals;

pub(crate) async fn shell(typed: &Shell, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read(invocation)?;
    let program = invocation.environment.shell.clone().map_or_else(|| Text::from("/bin/sh"), Text::from);
    let api = invocation.api().await?;
    let cwd = folder_to_join(&api, &typed.sandbox, &typed.context).await?;
    let request = request::shell(&typed.context, program, &caller, cwd.as_ref(), Terminals::look());
    let streams = Streams { tty: request.tty, stdin: request.stdin };
    let conversation = api.exec(&typed.sandbox, &request).await?;
    let topic = Topic::Command(&typed.leave.detach_keys);
    let ending = session::talk(conversation, topic, streams, invocation.form, &mut None).await?;
    Ok(exit_code(&ending, &typed.sandbox))
}
