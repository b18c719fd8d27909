//! A part of a file is exchanged for another.

use memchr::memmem;
use model::exec::Text;
use model::{Code, Problem, SandboxId};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{inside, schema};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Absolute, or from where its commands start
    path: String,
    /// What is there now, exactly, with its white space; it has to be there once
    search: String,
    /// What is to be there instead
    replace: String,
}

#[derive(Debug, Serialize)]
struct Edited {
    path: Text,
    /// Where the change begins.
    line: usize,
}

#[tool_router(router = edit_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_edit",
        description = "Replace one exact piece of text in a file of a sandbox. Refused, and nothing changed, unless the text is there exactly once.",
        input_schema = schema::<EditArgs>(),
        annotations(title = "Edit a file", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = false)
    )]
    async fn sandbox_edit(&self, Parameters(args): Parameters<EditArgs>) -> Told {
        let EditArgs { sandbox, path, search, replace } = args;
        let sandbox = self.sandbox(&sandbox).await?;
        let path = inside(&sandbox, &path);
        // Between reading and writing nobody else edits: agents ask for several edits at once.
        let _turn = turn_of(sandbox.id).lock().await;
        let (bytes, is_end) = self.part(&sandbox, &path, 0, LARGEST).await?;
        if !is_end {
            let detail = format!("the file is larger than {LARGEST} bytes");
            return Err(Problem::new(Code::TooLarge, detail)
                .hint("edit it with a command: sandbox_exec")
                .into());
        }
        let at = only_place(&bytes, search.as_bytes())?;
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let edited = [&bytes[..at], replace.as_bytes(), &bytes[at + search.len()..]].concat();
        self.write(&sandbox, &path, edited, None).await?;
        Ok(Answer::new(format!("Changed {} at line {line}.\n", path.display()), &Edited { path, line }))
    }
}

/// Where the text is, if it is there exactly once.
fn only_place(bytes: &[u8], search: &[u8]) -> Result<usize, Problem> {
    if search.is_empty() {
        return Err(Problem::new(Code::BadRequest, "`search` is empty"));
    }
    let first = memmem::find(bytes, search);
    let again = first.and_then(|at| memmem::find(&bytes[at + 1..], search));
    match (first, again) {
        (Some(at), None) => Ok(at),
        (None, _) => Err(Problem::new(Code::NotFound, "the file does not have the text of `search`")
            .hint("read it again with sandbox_read: spaces and line ends have to be the same")),
        (Some(_), Some(_)) => {
            let detail = "the file has the text of `search` more than once";
            Err(Problem::new(Code::Conflict, detail)
                .hint("give more of what is around the one that is meant"))
        }
    }
}

fn turn_of(id: SandboxId) -> &'static Mutex<()> {
    let sum: usize = id.to_string().bytes().map(usize::from).sum();
    &TURNS[sum % TURNS.len()]
}

/// Sandboxes share them, and seldom wait for each other.
static TURNS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// What is held in memory of a file that is edited.
const LARGEST: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_there_once_is_replaced() {
        let code = |bytes: &[u8], search: &[u8]| only_place(bytes, search).map_err(|problem| problem.code);
        assert_eq!(code(b"one two", b"two"), Ok(4));
        assert_eq!(code(b"one two", b"three"), Err(Code::NotFound));
        assert_eq!(code(b"two two", b"two"), Err(Code::Conflict));
        assert_eq!(code(b"aaa", b"aa"), Err(Code::Conflict));
        assert_eq!(code(b"one", b""), Err(Code::BadRequest));
    }
}
