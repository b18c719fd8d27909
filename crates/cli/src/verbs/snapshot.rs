//! `zeno snapshot`.

use model::snapshot::SnapshotRequest;

use crate::args::sandbox::labels;
use crate::args::snapshot::Snapshot;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::snapshots::name;

pub(crate) async fn snapshot(typed: &Snapshot, invocation: &Invocation) -> Result<u8, Failure> {
    let request = SnapshotRequest {
        name: typed.name.clone(),
        labels: labels(&typed.labels),
        actor: invocation.actor()?,
    };
    let api = invocation.api().await?;
    let snapshot = Waiting::begin("sealing").watch(api.snapshot(&typed.sandbox, &request)).await?;
    invocation.answer(&snapshot, |_| name(&snapshot) + "\n")?;
    Ok(DONE)
}
