//! What a model should know before it begins.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, Prompt, PromptMessage, Role};

/// The one prompt there is.
pub(super) fn prompt() -> Prompt {
    Prompt::new(NAME, Some(ABOUT), None).with_title("How to work safely with zeno")
}

pub(super) fn get(name: &str) -> Result<GetPromptResult, ErrorData> {
    if name != NAME {
        return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`: there is {NAME}"), None));
    }
    let message = PromptMessage::new_text(Role::User, TEXT);
    Ok(GetPromptResult::new(vec![message]).with_description(ABOUT))
}

pub(super) const INSTRUCTIONS: &str = "Sandboxes are instant copies of this whole machine, files and tools included. Try anything in one: nothing \
     touches the real machine until it is promoted, and a person has to agree to that. Name the sandbox in every \
     call. Long answers come in parts: pass `next_cursor` as `cursor` to read on.";

const NAME: &str = "work-safely";
const ABOUT: &str = "How to work safely with zeno: try in a copy, prove it, and let a person promote it";
const TEXT: &str = "\
Work with zeno in this order.

1. For one command whose effects nobody needs, use sandbox_run. For more, make a sandbox with sandbox_create and keep its id: every other tool takes it.
2. Change files with sandbox_edit and sandbox_write, and run commands with sandbox_exec. All of it happens in a copy of this machine: build, delete and install as you like. Start servers with `background` and read what they write with sandbox_output.
3. There is no network unless it is asked for. If a download fails, look at network_requests, and make a sandbox with `network` set to what it needs and no more, for example `allow:registries`.
4. Before something risky, take a sandbox_snapshot; sandbox_rollback goes back to it. To try several ways, use sandbox_fork, or sandbox_race with checks that decide.
5. Look at what changed with sandbox_diff before you call it done, and let sandbox_verify run the checks. Only a pass is a pass: inconclusive is not.
6. To make the changes real, use sandbox_promote. A person is asked, and sees what would change; do not look for a way round that. If it is refused, say so, and tell the person what the refusal says to do.
7. Remove what you no longer need with sandbox_destroy.

Credentials of this machine are hidden in a sandbox. That a file is missing there which exists outside is no fault to work around.
";
