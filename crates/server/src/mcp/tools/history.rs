//! Snapshots, and going back to them or on from them.

use model::snapshot::{ForkRequest, Forked, Forks, RollbackRequest, Snapshot, SnapshotRequest};
use model::{Name, Sandbox};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::create::Shown;
use super::{label, schema};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// What to call the snapshot
    name: Option<Name>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// How many copies; one if absent
    count: Option<u32>,
    /// What to call it; several have their number behind it
    name: Option<Name>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Id or name of the snapshot; the last one it stands on if absent
    snapshot: Option<String>,
}

#[derive(Debug, Serialize)]
struct Sealed<'a> {
    snapshot: &'a Snapshot,
}

#[tool_router(router = history_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_snapshot",
        description = "Remember all files of a sandbox as they are now, at once, to come back to with sandbox_rollback. What runs goes on.",
        input_schema = schema::<SnapshotArgs>(),
        annotations(title = "Take a snapshot", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn sandbox_snapshot(
        &self,
        Parameters(SnapshotArgs { sandbox, name }): Parameters<SnapshotArgs>,
    ) -> Told {
        let request = SnapshotRequest { name, actor: Self::ACTOR, ..SnapshotRequest::default() };
        let snapshot = self.app.control.snapshot(&sandbox, request).await?;
        let named = snapshot.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        Ok(Answer::new(format!("Snapshot {}{named}.\n", snapshot.id), &Sealed { snapshot: &snapshot }))
    }

    #[tool(
        name = "sandbox_fork",
        description = "Make one or more sandboxes that begin with all files of another as they are now, to try several things from the same state.",
        input_schema = schema::<ForkArgs>(),
        annotations(title = "Fork a sandbox", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn sandbox_fork(
        &self,
        Parameters(ForkArgs { sandbox, count, name }): Parameters<ForkArgs>,
    ) -> Told {
        let request =
            ForkRequest { count: count.unwrap_or(1), name, actor: Self::ACTOR, ..ForkRequest::default() };
        let forks = self.app.control.fork(&sandbox, request).await?;
        Ok(Answer::new(told(&forks), &forks))
    }

    #[tool(
        name = "sandbox_rollback",
        description = "Take a sandbox back to a snapshot. What was changed since is lost, and what runs in it is ended.",
        input_schema = schema::<RollbackArgs>(),
        annotations(title = "Roll a sandbox back", read_only_hint = false, destructive_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_rollback(
        &self,
        Parameters(RollbackArgs { sandbox, snapshot }): Parameters<RollbackArgs>,
    ) -> Told {
        let request = RollbackRequest { snapshot };
        let sandbox: Sandbox = self.app.control.rollback(&sandbox, request).await?;
        Ok(Answer::new(format!("{} is back.\n", label(&sandbox)), &Shown { sandbox: &sandbox }))
    }
}

fn told(forks: &Forks) -> String {
    let line = |forked: &Forked| match forked {
        Forked::Made { sandbox } => format!("{} is {}.\n", label(sandbox), sandbox.state),
        Forked::Failed { problem } => format!("one could not be made: {}\n", problem.detail),
    };
    forks.forks.iter().map(line).collect()
}
