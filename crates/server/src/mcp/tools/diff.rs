//! What a sandbox changed.

use std::path::PathBuf;

use model::Problem;
use model::diff::{Change, ChangeKind, Detail, Diff};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{inside, schema};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::page::{self, Page, Rest};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Only what is at or below these paths, absolute or from where its commands start
    #[serde(default)]
    paths: Vec<String>,
    /// Only what changed since this snapshot, by id or name
    from: Option<String>,
    /// The changes in the frozen folder themselves, as a patch for `git apply`, instead of a list of paths
    #[serde(default)]
    patch: bool,
    /// Where to go on, as the last answer said
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Changes {
    workspace: Vec<Change>,
    machine: Vec<Change>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Serialize)]
struct Patch {
    patch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[tool_router(router = diff_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_diff",
        description = "Show what a sandbox changed, in the frozen folder and elsewhere on its machine: paths with counts of lines, or a patch.",
        input_schema = schema::<DiffArgs>(),
        annotations(title = "Show changes", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_diff(&self, Parameters(args): Parameters<DiffArgs>) -> Told {
        let DiffArgs { sandbox, paths, from, patch, cursor } = args;
        let place = page::place(cursor.as_deref())?;
        let sandbox = self.sandbox(&sandbox).await?;
        let paths: Vec<PathBuf> =
            paths.iter().map(|path| inside(&sandbox, path).as_os_str().into()).collect();
        let which = sandbox.id.to_string();
        if patch {
            let Page { text, next_cursor } = self.patch(&which, from.as_deref(), paths, place).await?;
            let more = match &next_cursor {
                Some(cursor) => format!("\n[there is more: call again with cursor \"{cursor}\"]\n"),
                None => String::new(),
            };
            let shown = if text.is_empty() {
                "Nothing has changed in the frozen folder.\n".to_owned()
            } else {
                text.clone()
            };
            return Ok(Answer::new(shown + &more, &Patch { patch: text, next_cursor }));
        }
        let diff = self.app.control.diff(&which, from.as_deref(), paths, Detail::Lines).await?;
        let (text, changes) = listed(diff, place);
        Ok(Answer::new(text, &changes))
    }
}

impl Mcp {
    /// A page of the patch.
    pub(in crate::mcp) async fn patch(
        &self,
        which: &str,
        from: Option<&str>,
        paths: Vec<PathBuf>,
        place: u64,
    ) -> Result<Page, Problem> {
        let mut pieces = self.app.control.patch(which, from, paths).await?;
        let (mut skip, mut bytes) = (usize::try_from(place).unwrap_or(usize::MAX), Vec::new());
        while let Some(piece) = pieces.recv().await {
            let piece = piece?;
            let skipped = skip.min(piece.len());
            skip -= skipped;
            bytes.extend_from_slice(&piece[skipped..]);
            if bytes.len() > page::MOST {
                return Ok(page::text(&bytes, place, false));
            }
        }
        Ok(page::text(&bytes, place, true))
    }
}

fn listed(diff: Diff, place: u64) -> (String, Changes) {
    let Diff { root, workspace, machine, git, unread } = diff;
    let in_workspace = workspace.len();
    let all: Vec<Change> = workspace.into_iter().chain(machine).collect();
    let page::Items { items, rest } = page::items(all, place, AT_ONCE);
    let so_far = usize::try_from(place).unwrap_or(usize::MAX);
    let mut items = items.into_iter();
    let workspace: Vec<Change> = items.by_ref().take(in_workspace.saturating_sub(so_far)).collect();
    let machine: Vec<Change> = items.collect();
    let mut text = String::new();
    let root = root.map(|root| root.display().into_owned()).unwrap_or_default();
    for (title, changes) in [(format!("In {root}:"), &workspace), ("Elsewhere:".to_owned(), &machine)] {
        if !changes.is_empty() {
            text += &format!("{title}\n");
            text.extend(changes.iter().map(line));
        }
    }
    text.extend(git.iter().map(|path| format!("Something changed in git's folder {}\n", path.display())));
    text.extend(unread.iter().map(|path| format!("Could not be read: {}\n", path.display())));
    if text.is_empty() {
        text = "Nothing has changed.\n".to_owned();
    }
    (text + &rest.line("changes"), Changes { workspace, machine, rest })
}

fn line(change: &Change) -> String {
    let path = change.path.display();
    let what = match &change.kind {
        ChangeKind::Deleted => format!("deleted {path}"),
        ChangeKind::Added => format!("added {path}"),
        ChangeKind::Modified => format!("modified {path}"),
        ChangeKind::TypeChanged => format!("type changed {path}"),
        ChangeKind::Renamed { from } => format!("renamed {} to {path}", from.display()),
    };
    let lines =
        change.lines.map(|lines| format!("  +{} -{}", lines.added, lines.removed)).unwrap_or_default();
    let ignored = if change.ignored { "  (ignored by git)" } else { "" };
    format!("  {what}{lines}{ignored}\n")
}

const AT_ONCE: usize = 500;
