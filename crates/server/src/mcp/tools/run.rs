//! One command in a sandbox of its own.

use std::collections::BTreeMap;

use model::exec::{ExecRequest, Outcome, RunRequest};
use model::limits::Limits;
use model::units::Span;
use model::{SandboxId, SnapshotId};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::create::capturing;
use super::{schema, shell, variables};
use crate::api::execs::not_started;
use crate::api::relay::worth_keeping;
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::command::{self, Ran};
use crate::mcp::progress::{Progress, watch};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArgs {
    /// A line for `sh`
    command: String,
    /// Folder to freeze and to work in; the git worktree around your own folder if absent
    folder: Option<String>,
    /// What it may reach: `none` (default), `allow:registries` (where packages come from), `allow:github.com:443,...`,
    /// `open` (all that is public)
    network: Option<String>,
    /// Variables besides your own
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// `memory` ("2GiB"), `cpus` ("1.5"), `pids`, `disk`
    limits: Option<Limits>,
    /// How long it may run, for example "10m"; two minutes if absent
    timeout: Option<Span>,
    /// Keep the sandbox, to look at what it changed and to go on in it
    #[serde(default)]
    keep: bool,
}

#[derive(Debug, Serialize)]
struct Done {
    sandbox: SandboxId,
    /// Is it still there?
    kept: bool,
    outcome: Outcome,
    exit_code: i32,
    output: String,
    left_out: u64,
    /// What it wrote, where it ran out of time or memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotId>,
}

#[tool_router(router = run_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_run",
        description = "Run one command in a throwaway copy of this whole machine and get its output. What it changes is gone afterwards, \
                       so anything may be tried. To look at the changes or to go on, pass `keep`, or use sandbox_create and sandbox_exec.",
        input_schema = schema::<RunArgs>(),
        annotations(title = "Run in a throwaway sandbox", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_run(
        &self,
        Parameters(args): Parameters<RunArgs>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let RunArgs { command, folder, network, env, limits, timeout, keep } = args;
        let create = self.request(folder.as_deref(), network.as_deref(), limits, &context).await?;
        let exec = ExecRequest {
            argv: shell(&command),
            env: variables(&env),
            timeout: Some(timeout.unwrap_or(TIMEOUT)),
            ..ExecRequest::default()
        };
        let control = &self.app.control;
        let (sandbox, conversation) = watch(
            &context,
            |step| Some(capturing(step)),
            |steps| async move {
                let tell = |progress| {
                    // Whoever hears too slowly of one hears of the next.
                    if steps.try_send(progress).is_err() {
                        tracing::trace!("a step was not told");
                    }
                };
                control.run(RunRequest { create, exec, keep }, &tell).await
            },
        )
        .await?;
        // Whoever leaves takes it along.
        let throwaway = control.unless_kept(sandbox.id);
        let ran = command::follow(control, sandbox.id, conversation, &mut Progress::of(&context)).await?;
        throwaway.keep();
        let snapshot =
            if keep { None } else { control.dismiss(sandbox.id, worth_keeping(&ran.outcome)).await? };
        let snapshot = snapshot.map(|snapshot| snapshot.id);
        let Ran { outcome, output, .. } = ran;
        if !keep && matches!(outcome, Outcome::NotStarted { .. }) {
            return Err(not_started(outcome).into());
        }
        let how = match keep {
            true => format!("sandbox_output with sandbox \"{}\"", sandbox.id),
            false => "they are gone; run it again with `keep`, or let it write to a file".to_owned(),
        };
        let text = output.text(&how);
        let kept = match (keep, &snapshot) {
            (true, _) => format!("Kept as sandbox {}.\n", sandbox.id),
            (false, Some(snapshot)) => format!("What it wrote is kept in snapshot {snapshot}.\n"),
            (false, None) => String::new(),
        };
        let shown = format!("{}\n{kept}\n{text}", command::ending(&outcome));
        let exit_code = outcome.exit_code();
        let left_out = output.left_out();
        let done =
            Done { sandbox: sandbox.id, kept: keep, outcome, exit_code, output: text, left_out, snapshot };
        Ok(Answer::new(shown, &done))
    }
}

/// Clients do not wait much longer.
pub(super) const TIMEOUT: Span = Span::from_secs(120);
