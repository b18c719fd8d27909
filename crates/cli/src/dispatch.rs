//! From the command line to a verb, and from its end to an exit code.

use std::process::ExitCode;

use model::env::Environment;

use crate::args::daemon::DaemonAction;
use crate::args::{Cli, Verb};
use crate::failure::{Failure, ZENO_FAILED};
use crate::invocation::{Form, Invocation};
use crate::{hooks, verbs};

#[must_use]
pub fn main() -> ExitCode {
    // Not verbs of people's: the daemon starts its helpers this way, and nothing else must happen first.
    if let Some(done) = hooks::run_helper() {
        return ExitCode::from(if done.is_ok() { 0 } else { ZENO_FAILED });
    }
    let cli = Cli::read();
    let form = if cli.json { Form::Json } else { Form::People };
    let invocation = Invocation { environment: Environment::read(), form };
    let is_command = cli.verb.is_command();
    ExitCode::from(match call(cli.verb, &invocation) {
        Ok(code) => code,
        Err(failure) => {
            // A reader of ours that went away needs no telling.
            if !failure.is_broken_pipe() {
                invocation.complain(&failure.problem());
            }
            exit_code(&failure, is_command)
        }
    })
}

impl Verb {
    /// Does it exit with the code of a command in a sandbox?
    fn is_command(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Try(_) | Self::Exec(_) | Self::Shell(_) | Self::Attach(_))
    }
}

fn call(verb: Verb, invocation: &Invocation) -> Result<u8, Failure> {
    if let Verb::Daemon(daemon) = &verb
        && let Some(DaemonAction::Run(run)) = &daemon.action
    {
        // Before any runtime or thread: the daemon forks its launcher first.
        return verbs::daemon::run(run, invocation);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    let result = runtime.block_on(verbs::call(verb, invocation));
    // Whatever still waits in a thread of the runtime waits for nothing that matters any more.
    runtime.shutdown_background();
    result
}

fn exit_code(failure: &Failure, is_command: bool) -> u8 {
    if is_command { failure.command_exit() } else { failure.exit() }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn where_a_command_was_asked_for_zenos_own_failure_is_125() {
        let failure = Failure::Unconfirmed { sandboxes: 1 };
        assert_eq!((exit_code(&failure, false), exit_code(&failure, true)), (4, 125));
        let closed = Failure::Output(io::ErrorKind::BrokenPipe.into());
        assert_eq!((exit_code(&closed, false), exit_code(&closed, true)), (141, 141));
    }
}
