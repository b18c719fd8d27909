//! `zeno pause`, `resume`, `stop`, `start`: the same for every sandbox that is named.

use crate::api::Change;
use crate::args::which::Which;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::progress::Waiting;

pub(crate) async fn change(which: &[Which], change: Change, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let message = match change {
        Change::Pause => "pausing",
        Change::Resume => "resuming",
        Change::Stop => "stopping",
        Change::Start => "starting",
    };
    let mut changed = Vec::new();
    for which in which {
        changed.push(Waiting::begin(message).watch(api.change(which, change)).await?);
    }
    let shown =
        |sandbox: &model::Sandbox| format!("{}  {}\n", crate::render::words::name(sandbox), sandbox.state);
    invocation.answer(&changed, |_| changed.iter().map(shown).collect())?;
    Ok(crate::failure::DONE)
}
