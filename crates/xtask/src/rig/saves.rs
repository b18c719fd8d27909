//! Snapshots and what can be done with them, asked for over the API.

use std::fmt::Display;

use model::diff::Diff;
use model::snapshot::{RestoreRequest, SnapshotRequest};
use model::{Sandbox, SandboxId, Snapshot, SnapshotId};

use super::zeno::read;
use super::{Connection, RigError};

/// Seals what a sandbox has written.
pub(crate) fn snapshot(connection: &mut Connection, sandbox: SandboxId) -> Result<SnapshotId, RigError> {
    let body = serde_json::to_string(&SnapshotRequest::default()).expect("a request is plain data");
    let path = format!("/v1/sandboxes/{sandbox}/snapshots");
    let snapshot: Snapshot = read(&path, &connection.send("POST", &path, &body)?)?;
    Ok(snapshot.id)
}

/// Makes a sandbox of a snapshot.
pub(crate) fn restore(connection: &mut Connection, snapshot: SnapshotId) -> Result<SandboxId, RigError> {
    let body = serde_json::to_string(&RestoreRequest::default()).expect("a request is plain data");
    let path = format!("/v1/snapshots/{snapshot}/restore");
    let sandbox: Sandbox = read(&path, &connection.send("POST", &path, &body)?)?;
    Ok(sandbox.id)
}

/// The snapshots that were made of a sandbox.
pub(crate) fn of(connection: &mut Connection, sandbox: SandboxId) -> Result<Vec<SnapshotId>, RigError> {
    let path = format!("/v1/snapshots?sandbox={sandbox}");
    let snapshots: Vec<Snapshot> = read(&path, &connection.send("GET", &path, "")?)?;
    Ok(snapshots.into_iter().map(|snapshot| snapshot.id).collect())
}

pub(crate) fn remove(connection: &mut Connection, snapshot: SnapshotId) -> Result<(), RigError> {
    connection.send("DELETE", &format!("/v1/snapshots/{snapshot}"), "").map(drop)
}

/// Removes the layers that nobody stands on any more, and waits for it.
pub(crate) fn collect_garbage(connection: &mut Connection) -> Result<(), RigError> {
    connection.send("POST", "/v1/gc", "{}").map(drop)
}

/// How many paths of its workspace a sandbox changed, all in all or since a snapshot.
pub(crate) fn changes(
    connection: &mut Connection,
    sandbox: SandboxId,
    since: Option<SnapshotId>,
) -> Result<usize, RigError> {
    let path = diff_path(sandbox, since);
    let diff: Diff = read(&path, &connection.send("GET", &path, "")?)?;
    Ok(diff.workspace.len())
}

pub(crate) fn diff_path(sandbox: SandboxId, since: Option<SnapshotId>) -> String {
    let query = since.map_or(String::new(), |snapshot| format!("?from={snapshot}"));
    path(sandbox, "diff") + &query
}

/// Of something to ask about a sandbox, or to do to it.
pub(crate) fn path(sandbox: SandboxId, what: impl Display) -> String {
    format!("/v1/sandboxes/{sandbox}/{what}")
}
