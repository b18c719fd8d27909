//! Snapshots, which are templates for what is made next, and forks.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::snapshot::{ForkRequest, Forked, SnapshotRequest};
use model::{Name, Problem, Snapshot};
use serde::Deserialize;

use super::body::Body;
use super::create::{DEFAULT_TIMEOUT, made, seconds, timeout_of};
use super::life::{find, to_the_end};
use super::list::{NEXT, key};
use super::pages::{Order, Paging, page};
use super::wire::{ForkResult, NewFork, NewSnapshot, SnapshotInfo};
use crate::e2b::E2b;
use crate::e2b::failure::Failure;

pub(super) async fn make(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(NewSnapshot { name }): Body<NewSnapshot>,
) -> Result<Response, Failure> {
    find(&door, &id).await?;
    let name = name.as_deref().map(named).transpose()?;
    let request = SnapshotRequest { name, ..SnapshotRequest::default() };
    let snapshot = door.app.control.snapshot(&id, request).await?;
    Ok((StatusCode::CREATED, Json(info(&snapshot))).into_response())
}

fn named(name: &str) -> Result<Name, Failure> {
    untagged(name).parse().map_err(|error: model::id::BadName| Failure::bad_request(error.to_string()))
}

/// E2B calls the newest build of a template `NAME:default`. Here there is one of each name.
pub(super) fn untagged(name: &str) -> &str {
    name.strip_suffix(":default").unwrap_or(name)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    #[serde(rename = "sandboxID")]
    sandbox: Option<String>,
    name: Option<String>,
    limit: Option<usize>,
    #[serde(rename = "nextToken")]
    next_token: Option<String>,
}

pub(super) async fn list(State(door): State<E2b>, Query(filter): Query<Filter>) -> Result<Response, Failure> {
    let all = door.app.control.snapshots(None).await?;
    let fits = |snapshot: &Snapshot| {
        let name = snapshot.name.as_ref().map(Name::as_str);
        snapshot.reason.is_asked()
            && filter.sandbox.as_ref().is_none_or(|id| snapshot.sandbox.to_string() == *id)
            && filter.name.as_deref().is_none_or(|wanted| name == Some(untagged(wanted)))
    };
    let paging = Paging { limit: filter.limit, after: filter.next_token.as_deref(), order: Order::Desc };
    let all = all.into_iter().filter(fits).collect();
    let (items, next) = page(all, paging, |snapshot: &Snapshot| key(snapshot.created, snapshot.id))?;
    let items: Vec<SnapshotInfo> = items.iter().map(info).collect();
    Ok((axum::response::AppendHeaders(next.map(|next| (NEXT, next))), Json(items)).into_response())
}

fn info(snapshot: &Snapshot) -> SnapshotInfo {
    SnapshotInfo {
        id: snapshot.id.to_string(),
        names: snapshot.name.iter().map(ToString::to_string).collect(),
    }
}

/// The files of a sandbox, and what it was made with. Processes are not cloned: a fork starts without any.
pub(super) async fn fork(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(NewFork { timeout, count }): Body<NewFork>,
) -> Result<Response, Failure> {
    find(&door, &id).await?;
    let request = ForkRequest { count: count.unwrap_or(1), ..ForkRequest::default() };
    let timeout = seconds(timeout_of(timeout, DEFAULT_TIMEOUT));
    let results = to_the_end(async move {
        let forks = door.app.control.fork(&id, request).await?;
        let mut results = Vec::new();
        for forked in forks.forks {
            let result = match forked {
                Forked::Made { sandbox } => {
                    let given = door.app.control.extend(&sandbox.id.to_string(), timeout).await;
                    given.map(|sandbox| made(&door, &sandbox))
                }
                Forked::Failed { problem } => Err(problem),
            };
            results.push(result.map_or_else(failed, ForkResult::Sandbox));
        }
        Ok(results)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(results)).into_response())
}

fn failed(problem: Problem) -> ForkResult {
    let failure = Failure::from(problem);
    ForkResult::Error { code: failure.status().as_u16(), message: failure.message().to_owned() }
}
