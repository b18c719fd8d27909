//! Which sandboxes there are, and how one stands.

use model::sandbox::{Sandbox, Status};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::create::made;
use super::{label, schema};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::page::{self, Rest};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArgs {
    /// Where to go on, as the last answer said
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArgs {
    /// Id or name of the sandbox
    sandbox: String,
}

#[derive(Debug, Serialize)]
struct Listed {
    sandboxes: Vec<Sandbox>,
    #[serde(flatten)]
    rest: Rest,
}

#[tool_router(router = look_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_list",
        description = "List the sandboxes there are, newest first, whoever made them.",
        input_schema = schema::<ListArgs>(),
        annotations(title = "List sandboxes", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_list(&self, Parameters(ListArgs { cursor }): Parameters<ListArgs>) -> Told {
        let from = page::place(cursor.as_deref())?;
        let mut all = self.app.control.list(false).await?;
        all.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created));
        let page::Items { items: sandboxes, rest } = page::items(all, from, AT_ONCE);
        let lines: String = sandboxes.iter().map(line).collect();
        let text = if lines.is_empty() { "There is no sandbox.\n".to_owned() } else { lines };
        Ok(Answer::new(text + &rest.line("sandboxes"), &Listed { sandboxes, rest }))
    }

    #[tool(
        name = "sandbox_status",
        description = "Show how a sandbox stands to the real machine: its state and limits, how far its frozen folder is behind, which \
                       paths are hidden in it, what it has written, and what it cannot represent.",
        input_schema = schema::<StatusArgs>(),
        annotations(title = "Show a sandbox", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_status(&self, Parameters(StatusArgs { sandbox }): Parameters<StatusArgs>) -> Told {
        let status = self.app.control.status(&sandbox).await?;
        Ok(Answer::new(told(&status), &status))
    }
}

fn line(sandbox: &Sandbox) -> String {
    let place = sandbox.workspace.as_ref().unwrap_or(&sandbox.cwd).display();
    format!("{}  {}  {place}  made {}\n", label(sandbox), sandbox.state, sandbox.created)
}

fn told(status: &Status) -> String {
    let mut text = made(&status.sandbox);
    if let Some(expires) = status.sandbox.expires {
        text += &format!("It lives until {expires}.\n");
    }
    text += &format!("It has written {}; {}.\n", status.written, status.live.text());
    if let Some(fresh) = &status.freshness {
        let paths: String = fresh.behind.iter().map(|path| format!("  {}\n", path.display())).collect();
        text += &match (fresh.gone, fresh.behind_total) {
            (true, _) => "The real folder is no longer there.\n".to_owned(),
            (false, 0) => "Nothing in the real folder has changed since it was frozen.\n".to_owned(),
            (false, total) => format!("{total} paths in the real folder have changed since:\n{paths}"),
        };
    }
    text + &format!("{} paths are hidden in it (credentials and the like).\n", status.masked.len())
}

const AT_ONCE: usize = 100;
