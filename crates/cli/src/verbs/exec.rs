//! `zeno exec`, and how a command's end becomes an exit code.

use std::fmt::Display;

use model::ExecId;
use model::exec::{Outcome, Text};

use crate::api::Api;
use crate::args::command::ContextArgs;
use crate::args::exec::Exec;
use crate::args::which::Which;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::output;
use crate::request::{self, Streams};
use crate::session::{self, Ending, Topic};
use crate::signal::SignalNumber;
use crate::terminal::Terminals;

pub(crate) async fn exec(typed: &Exec, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read(invocation)?;
    let streams = if typed.detach {
        Streams::detached(&typed.command.streams)
    } else {
        Streams::of(&typed.command.streams, Terminals::look())
    };
    let api = invocation.api().await?;
    let cwd = folder_to_join(&api, &typed.sandbox, &typed.command.context).await?;
    let request = request::exec(&typed.command, &caller, cwd.as_ref(), streams);
    if typed.detach {
        let exec = api.exec_detached(&typed.sandbox, &request).await?;
        invocation.answer(&exec, |_| format!("{}\n", exec.id))?;
        return Ok(DONE);
    }
    let conversation = api.exec(&typed.sandbox, &request).await?;
    let topic = Topic::Command(&typed.leave.detach_keys);
    let ending = session::talk(conversation, topic, streams, invocation.form, &mut None).await?;
    Ok(exit_code(&ending, &typed.sandbox))
}

/// Where commands in the sandbox start: asked for only when a relative folder has to be joined to it.
pub(super) async fn folder_to_join(
    api: &Api,
    sandbox: &Which,
    context: &ContextArgs,
) -> Result<Option<Text>, Failure> {
    match &context.workdir {
        Some(dir) if dir.is_relative() => Ok(Some(api.sandbox(sandbox).await?.cwd)),
        Some(_) | None => Ok(None),
    }
}

/// The command's own code, or what a shell would say; why it is not its own is told on standard error.
pub(super) fn exit_code(ending: &Ending, sandbox: &impl Display) -> u8 {
    match ending {
        Ending::Command(outcome) => {
            if let Some(reason) = told(outcome) {
                output::note(&format!("zeno: {reason}\n"));
            }
            // A process reports the low eight bits of its code, as every shell does.
            outcome.exit_code().to_le_bytes()[0]
        }
        Ending::Left => 128 + SignalNumber::INT.0.to_le_bytes()[0],
        Ending::Detached(exec) => {
            // Where the cursor stands is the command's affair.
            output::note(&format!("\n{}\n", left_running(*exec, sandbox)));
            DONE
        }
    }
}

fn left_running(exec: Option<ExecId>, sandbox: &impl Display) -> String {
    match exec {
        Some(exec) => {
            format!("left running: {exec} (zeno attach {sandbox} {exec}, zeno kill {sandbox} {exec})")
        }
        None => format!("left running (zeno execs {sandbox})"),
    }
}

fn told(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Exited { .. } | Outcome::Signaled { .. } => None,
        Outcome::TimedOut => Some("the command ran out of time".to_owned()),
        Outcome::OutputLimit => Some("the command wrote more than its limit".to_owned()),
        Outcome::OutOfMemory { limit, .. } => {
            Some(format!("killed: out of memory (limit {limit}); give more with --memory"))
        }
        Outcome::NotStarted { reason, .. } => Some(reason.clone()),
        Outcome::SandboxEnded { reason } => Some(format!("the sandbox ended first: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let ended = |reason: &str| Outcome::SandboxEnded { reason: reason.to_owned() };
        let cases = [
            (Outcome::Exited { code: 0 }, 0),
            (Outcome::Exited { code: 3 }, 3),
            (Outcome::Signaled { signal: 9 }, 137),
            (Outcome::TimedOut, 124),
            (Outcome::OutOfMemory { code: 137, limit: model::units::Size(1) }, 137),
            (Outcome::NotStarted { code: 127, reason: "no such program".to_owned() }, 127),
            (Outcome::NotStarted { code: 126, reason: "not executable".to_owned() }, 126),
            (ended("destroyed"), 125),
        ];
        for (outcome, code) in cases {
            assert_eq!(exit_code(&Ending::Command(outcome), &"web"), code);
        }
        assert_eq!(exit_code(&Ending::Left, &"web"), 130);
        assert_eq!(exit_code(&Ending::Detached(Some(ExecId(3))), &"web"), 0);
    }

    #[test]
    fn who_leaves_is_told_the_way_back() {
        let told = left_running(Some(ExecId(3)), &"web");
        assert_eq!(told, "left running: 3 (zeno attach web 3, zeno kill web 3)");
        assert_eq!(left_running(None, &"web"), "left running (zeno execs web)");
    }
}
