//! `zeno gc`.

use crate::args::snapshot::Gc;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::snapshots as render;

pub(crate) async fn gc(typed: &Gc, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let garbage = Waiting::begin("collecting").watch(api.collect_garbage(typed.dry_run)).await?;
    invocation.answer(&garbage, |_| render::garbage(&garbage))?;
    Ok(DONE)
}
