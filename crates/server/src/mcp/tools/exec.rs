//! Commands in a sandbox that stays, and what they wrote.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::exec::{Exec, ExecRequest, Outcome};
use model::units::Span;
use model::{Code, ExecId, Problem};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::TIMEOUT;
use super::{inside, schema, shell, variables};
use crate::api::execs::{not_started, started};
use crate::logs::{LogError, records};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::command::{self, Ran};
use crate::mcp::page::{self, Page};
use crate::mcp::progress::Progress;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// A line for `sh`
    command: String,
    /// Folder inside to run it in; where its commands start if absent
    cwd: Option<String>,
    /// Variables besides those of the sandbox
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// How long it may run, for example "10m"; two minutes if absent, or without end in the background
    timeout: Option<Span>,
    /// Leave it running, for servers and the like; sandbox_output reads what it writes
    #[serde(default)]
    background: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Number of the command, as sandbox_exec gave it; the last one if absent
    exec: Option<u32>,
    /// Where to go on, as an answer said; the beginning if absent
    cursor: Option<String>,
    /// Wait so long for the command to end, for example "30s"; a minute at most
    wait: Option<Span>,
}

#[derive(Debug, Serialize)]
struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<ExecId>,
    outcome: Outcome,
    exit_code: i32,
    output: String,
    left_out: u64,
    /// Where what is left out begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Begun {
    exec: ExecId,
    pid: i32,
    running: bool,
}

#[derive(Debug, Serialize)]
struct Wrote {
    exec: ExecId,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    output: String,
    /// Where to go on; of a command that runs, also for what it has not written yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[tool_router(router = exec_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_exec",
        description = "Run a command in a sandbox and get its output and exit code, or start it in the background. What it changes stays \
                       in the sandbox and does not touch the machine.",
        input_schema = schema::<ExecArgs>(),
        annotations(title = "Run in a sandbox", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_exec(
        &self,
        Parameters(args): Parameters<ExecArgs>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let ExecArgs { sandbox, command, cwd, env, timeout, background } = args;
        let sandbox = self.sandbox(&sandbox).await?;
        let request = ExecRequest {
            argv: shell(&command),
            env: variables(&env),
            cwd: cwd.map(|cwd| inside(&sandbox, &cwd)),
            timeout: timeout.or((!background).then_some(TIMEOUT)),
            ..ExecRequest::default()
        };
        let control = &self.app.control;
        let conversation = control.exec(&sandbox.id.to_string(), request).await?;
        if background {
            let exec = started(conversation.stream).await?;
            let begun = Begun { exec: exec.id, pid: exec.pid, running: true };
            let how = "sandbox_output reads what it writes; `kill` with its pid in sandbox_exec ends it";
            return Ok(Answer::new(format!("Started as {} (pid {}). {how}.\n", exec.id, exec.pid), &begun));
        }
        let mut progress = Progress::of(&context);
        let Ran { exec, outcome, output } =
            command::follow(control, sandbox.id, conversation, &mut progress).await?;
        if matches!(outcome, Outcome::NotStarted { .. }) {
            return Err(not_started(outcome).into());
        }
        let exec = exec.map(|exec: Exec| exec.id);
        let next_cursor = output.cursor();
        let how = match (exec, &next_cursor) {
            (Some(exec), Some(cursor)) => format!("sandbox_output with exec {exec} and cursor \"{cursor}\""),
            (None, _) | (_, None) => String::new(),
        };
        let text = output.text(&how);
        let shown = format!("{}\n\n{text}", command::ending(&outcome));
        let (exit_code, left_out) = (outcome.exit_code(), output.left_out());
        Ok(Answer::new(shown, &Done { exec, outcome, exit_code, output: text, left_out, next_cursor }))
    }

    #[tool(
        name = "sandbox_output",
        description = "Read what a command in a sandbox has written so far, in parts, and whether it still runs.",
        input_schema = schema::<OutputArgs>(),
        annotations(title = "Read a command's output", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_output(&self, Parameters(args): Parameters<OutputArgs>) -> Told {
        let OutputArgs { sandbox, exec, cursor, wait } = args;
        let from = page::place(cursor.as_deref())?;
        let sandbox = self.sandbox(&sandbox).await?;
        let which = sandbox.id.to_string();
        let patience = wait.map_or(Duration::ZERO, |wait| wait.0.min(LONGEST_WAIT));
        let (exec, ended) = self.ended(&which, exec.map(ExecId), patience).await?;
        let path = self.app.control.log_path(&which).await?;
        let running = ended.is_none();
        let read = tokio::task::spawn_blocking(move || written(&path, exec, from));
        let bytes = read.await.map_err(|error| Problem::from_error(Code::Internal, &error))?;
        let bytes = bytes.map_err(|error| Problem::from_error(Code::Internal, &error))?;
        let Page { text, next_cursor } = page::text(&bytes, from, bytes.len() <= page::MOST);
        let next_cursor = match next_cursor {
            None if running => Some((from + bytes.len() as u64).to_string()),
            next_cursor => next_cursor,
        };
        let state = ended.as_ref().map_or_else(|| "it still runs".to_owned(), command::ending);
        let more = match &next_cursor {
            Some(cursor) => {
                format!("\n[more may follow: call again with exec {exec} and cursor \"{cursor}\"]\n")
            }
            None => String::new(),
        };
        let shown = format!("{exec}: {state}\n\n{text}{more}");
        Ok(Answer::new(shown, &Wrote { exec, running, outcome: ended, output: text, next_cursor }))
    }
}

impl Mcp {
    /// How a command ended, if it did so within that time.
    async fn ended(
        &self,
        which: &str,
        exec: Option<ExecId>,
        patience: Duration,
    ) -> Result<(ExecId, Option<Outcome>), Problem> {
        let deadline = Instant::now() + patience;
        loop {
            let execs = self.app.control.execs(which).await?;
            let found = match exec {
                Some(id) => execs.into_iter().find(|known| known.id == id),
                None => execs.into_iter().max_by_key(|known| known.id.0),
            };
            let Some(found) = found else { return Err(no_command(exec)) };
            if found.outcome.is_some() || Instant::now() >= deadline {
                return Ok((found.id, found.outcome));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn no_command(exec: Option<ExecId>) -> Problem {
    match exec {
        Some(exec) => Problem::new(Code::NotFound, format!("the sandbox has no command {exec}")),
        None => Problem::new(Code::NotFound, "no command has been run in this sandbox"),
    }
}

/// What a command wrote from that byte on, a little more than a page of it at most.
fn written(path: &std::path::Path, exec: ExecId, from: u64) -> Result<Vec<u8>, LogError> {
    let mut records = match records(path) {
        Ok(records) => records,
        // Nothing has been written yet.
        Err(LogError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let (mut skip, mut bytes) = (usize::try_from(from).unwrap_or(usize::MAX), Vec::new());
    while bytes.len() <= page::MOST {
        let Some(record) = records.read()? else { break };
        if record.exec == exec {
            let skipped = skip.min(record.data.len());
            skip -= skipped;
            bytes.extend_from_slice(&record.data[skipped..]);
        }
    }
    Ok(bytes)
}

const POLL: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
