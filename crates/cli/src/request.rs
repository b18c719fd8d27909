//! From what was typed to what is asked of the API. Defaults, the caller's surroundings and the terminal
//! come in here, once; nothing later asks whether a flag was given.

use std::path::Path;

use model::exec::{ExecRequest, RunRequest, Text, Variable, Window};
use model::limits::Limits;
use model::net::{NewSecret, SecretFor, SecretValue};
use model::sandbox::{CreateRequest, WorkspaceChoice};

use crate::args::command::{CommandArgs, ContextArgs, EnvArg, StreamArgs};
use crate::args::run::{Create, Run};
use crate::args::sandbox::{LimitArgs, SandboxArgs, labels};
use crate::args::trial::Trial;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::terminal::{Input, Terminals};

/// What `zeno run` asks: a sandbox and a command in it.
pub(crate) fn run(run: &Run, caller: &Caller, terminals: Terminals) -> Result<RunRequest, Failure> {
    let streams = if run.detach {
        Streams::detached(&run.command.streams)
    } else {
        Streams::of(&run.command.streams, terminals)
    };
    let cwd = run.command.context.workdir.as_deref().map(|dir| caller.absolute(dir).into());
    Ok(RunRequest {
        create: CreateRequest { context: caller.context(), ..sandbox(&run.sandbox, caller)? },
        exec: command(&run.command, caller, cwd, streams),
        keep: run.keep || run.detach,
    })
}

/// What `zeno try` asks: the same, kept until it is decided what becomes of it.
pub(crate) fn trial(trial: &Trial, caller: &Caller, terminals: Terminals) -> Result<RunRequest, Failure> {
    let streams = Streams::of(&trial.command.streams, terminals);
    let cwd = trial.command.context.workdir.as_deref().map(|dir| caller.absolute(dir).into());
    Ok(RunRequest {
        create: CreateRequest { context: caller.context(), ..sandbox(&trial.sandbox, caller)? },
        exec: command(&trial.command, caller, cwd, streams),
        keep: true,
    })
}

/// What `zeno create` asks. Here the command's flags belong to the sandbox's own context.
pub(crate) fn create(create: &Create, caller: &Caller) -> Result<CreateRequest, Failure> {
    let mut context = caller.context();
    for variable in variables(&create.context.env, caller) {
        context.env.retain(|earlier| earlier.name != variable.name);
        context.env.push(variable);
    }
    if let Some(dir) = &create.context.workdir {
        context.cwd = caller.absolute(dir).into();
    }
    context.user.clone_from(&create.context.user);
    Ok(CreateRequest { context, ..sandbox(&create.sandbox, caller)? })
}

/// What `zeno exec` asks. A relative folder is meant relative to where commands in that sandbox start, so
/// the one who calls has asked for it.
pub(crate) fn exec(
    typed: &CommandArgs,
    caller: &Caller,
    sandbox_cwd: Option<&Text>,
    streams: Streams,
) -> ExecRequest {
    let cwd = typed.context.workdir.as_deref().map(|dir| inside(dir, sandbox_cwd));
    command(typed, caller, cwd, streams)
}

/// What `zeno shell` asks: a login shell on a terminal.
pub(crate) fn shell(
    typed: &ContextArgs,
    shell: Text,
    caller: &Caller,
    sandbox_cwd: Option<&Text>,
    terminals: Terminals,
) -> ExecRequest {
    let streams = Streams { tty: Some(terminals.window_or_default()), stdin: true };
    ExecRequest {
        argv: vec![shell, "-l".into()],
        env: with_term(variables(&typed.env, caller), caller, streams.tty),
        cwd: typed.workdir.as_deref().map(|dir| inside(dir, sandbox_cwd)),
        user: typed.user.clone(),
        tty: streams.tty,
        stdin: streams.stdin,
        ..ExecRequest::default()
    }
}

/// How a command is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    pub(crate) tty: Option<Window>,
    pub(crate) stdin: bool,
}

impl Streams {
    /// A terminal where both ends are one; standard input wherever it cannot be a person who is not asked.
    pub(crate) fn of(typed: &StreamArgs, terminals: Terminals) -> Self {
        let at_a_terminal = terminals.stdin == Input::Terminal && terminals.stdout;
        let wants_tty = typed.tty || (at_a_terminal && !typed.no_tty);
        let tty = wants_tty.then(|| terminals.window_or_default());
        Self { tty, stdin: typed.interactive || tty.is_some() || terminals.stdin == Input::Stream }
    }

    /// Nobody is there to type or to read.
    pub(crate) fn detached(typed: &StreamArgs) -> Self {
        Self { tty: typed.tty.then_some(Terminals::DEFAULT_WINDOW), stdin: false }
    }
}

fn sandbox(typed: &SandboxArgs, caller: &Caller) -> Result<CreateRequest, Failure> {
    let workspace = match &typed.workspace {
        Some(dir) => {
            let folder =
                caller.folder(dir).map_err(|source| Failure::Workspace { dir: dir.clone(), source })?;
            WorkspaceChoice::Folder(folder.into())
        }
        None if typed.no_workspace => WorkspaceChoice::None,
        None => WorkspaceChoice::Auto,
    };
    Ok(CreateRequest {
        name: typed.name.clone(),
        workspace,
        net: typed.net.clone().unwrap_or_default(),
        limits: limits(&typed.limits),
        unmask: typed.unmask.clone(),
        secrets: secrets(&typed.secrets, caller)?,
        nested: typed.nested,
        labels: labels(&typed.labels),
        actor: typed.actor.unwrap_or(caller.actor),
        consumer: typed.consumer.clone(),
        ..CreateRequest::default()
    })
}

/// Secrets with their values, which are the caller's own variables.
pub(crate) fn secrets(typed: &[SecretFor], caller: &Caller) -> Result<Vec<NewSecret>, Failure> {
    let secret = |secret: &SecretFor| {
        let missing = || Failure::NoSecret { name: secret.name.clone() };
        let variable = caller.variable(&secret.name.as_str().into()).ok_or_else(missing)?;
        let value = String::from_utf8(variable.value.0.clone()).map_err(|_not_text| missing())?;
        let value = SecretValue::new(value);
        Ok(NewSecret { name: secret.name.clone(), hosts: secret.hosts.clone(), value })
    };
    typed.iter().map(secret).collect()
}

pub(crate) fn limits(typed: &LimitArgs) -> Limits {
    Limits {
        cpus: typed.cpus,
        memory: typed.memory,
        pids: typed.pids,
        disk: typed.disk,
        ttl: typed.ttl,
        idle: typed.idle,
        on_expire: typed.on_expire,
        best_effort: typed.best_effort,
    }
}

fn command(typed: &CommandArgs, caller: &Caller, cwd: Option<Text>, streams: Streams) -> ExecRequest {
    ExecRequest {
        argv: typed.argv.iter().cloned().map(Text::from).collect(),
        env: with_term(variables(&typed.context.env, caller), caller, streams.tty),
        cwd,
        user: typed.context.user.clone(),
        umask: None,
        tty: streams.tty,
        stdin: streams.stdin,
        timeout: typed.timeout,
        output_limit: typed.output_limit,
    }
}

/// As in Docker, a bare name that the caller does not have is left out.
fn variables(typed: &[EnvArg], caller: &Caller) -> Vec<Variable> {
    typed
        .iter()
        .filter_map(|argument| match argument {
            EnvArg::Set { name, value } => Some(Variable { name: name.clone(), value: value.clone() }),
            EnvArg::Caller { name } => caller.variable(name).cloned(),
        })
        .collect()
}

/// The terminal in use is the caller's of now, not that of the one who made the sandbox.
fn with_term(typed: Vec<Variable>, caller: &Caller, tty: Option<Window>) -> Vec<Variable> {
    let term = tty.and_then(|_| caller.variable(&"TERM".into()).cloned());
    term.into_iter().chain(typed).collect()
}

fn inside(dir: &Path, sandbox_cwd: Option<&Text>) -> Text {
    match sandbox_cwd {
        Some(cwd) => Path::new(cwd.as_os_str()).join(dir).into(),
        None => dir.to_owned().into(),
    }
}

#[cfg(test)]
mod tests;
