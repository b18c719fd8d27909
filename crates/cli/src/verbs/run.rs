//! `zeno run`.

use model::Sandbox;
use model::exec::{Exec, RunRequest};
use serde::Serialize;

use crate::api::Api;
use crate::args::run::Run;
use crate::args::which::Which;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::keys::DetachKeys;
use crate::output;
use crate::progress::Waiting;
use crate::render::words;
use crate::request::{self, Streams};
use crate::session::{self, Ending, Topic};
use crate::terminal::Terminals;
use crate::verbs::create::made;

pub(crate) async fn run(typed: &Run, invocation: &Invocation) -> Result<u8, Failure> {
    let request = request::run(typed, &Caller::read(invocation)?, Terminals::look())?;
    let api = invocation.api().await?;
    if typed.detach {
        detached(&api, &request, invocation).await
    } else {
        attached(&api, &request, &typed.leave.detach_keys, invocation).await
    }
}

async fn attached(
    api: &Api,
    request: &RunRequest,
    keys: &DetachKeys,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let topic = if request.keep { Topic::Command(keys) } else { Topic::Throwaway };
    let (ending, sandbox) = talked(api, request, topic, invocation.form).await?;
    let name = sandbox.as_ref().map(words::name).unwrap_or_default();
    if sandbox.is_some() && request.keep && invocation.form == Form::People {
        output::note(&format!("kept: {name} (zeno shell {name}, zeno destroy {name})\n"));
    }
    Ok(super::exec::exit_code(&ending?, &name))
}

/// The command from its start to its end, and the sandbox that was made for it, however it ended.
pub(super) async fn talked(
    api: &Api,
    request: &RunRequest,
    topic: Topic<'_>,
    form: Form,
) -> Result<(Result<Ending, Failure>, Option<Sandbox>), Failure> {
    let streams = Streams { tty: request.exec.tty, stdin: request.exec.stdin };
    let conversation = Waiting::begin("making the sandbox").watch(api.run(request)).await?;
    let mut sandbox = None;
    // A conversation that ends early takes its throwaway sandbox with it, so leaving needs no more.
    let ending = session::talk(conversation, topic, streams, form, &mut sandbox).await;
    Ok((ending, sandbox))
}

async fn detached(api: &Api, request: &RunRequest, invocation: &Invocation) -> Result<u8, Failure> {
    let sandbox = made(api, &request.create).await?;
    let which = Which::from(sandbox.id);
    let exec = match api.exec_detached(&which, &request.exec).await {
        Ok(exec) => exec,
        Err(error) => {
            // Nobody was told of this sandbox, so nobody would remove it.
            api.destroy(&which).await?;
            return Err(error.into());
        }
    };
    let name = words::name(&sandbox);
    invocation.answer(&Started { sandbox, exec }, |_| name + "\n")?;
    Ok(DONE)
}

/// The answer of `zeno run --detach --json`.
#[derive(Serialize)]
struct Started {
    sandbox: Sandbox,
    exec: Exec,
}
