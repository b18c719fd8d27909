//! What sandboxes are made of: this machine, and every snapshot.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use model::limits::Limits;
use model::sandbox::Actor;
use model::{Code, Snapshot, SnapshotId};
use serde::Serialize;

use super::list::Share;
use super::snapshots::untagged;
use crate::e2b::E2b;
use crate::e2b::envd;
use crate::e2b::failure::Failure;

/// What a name that a client says stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// This machine as it is, with the user that E2B's templates have.
    Machine,
    Snapshot(SnapshotId),
}

pub(super) async fn find(door: &E2b, name: &str) -> Result<Template, Failure> {
    let name = untagged(name);
    if name == BASE || name == INTERPRETER {
        return Ok(Template::Machine);
    }
    match door.app.control.get_snapshot(name).await {
        // By its whole id or name: the beginning of one is what a person types.
        Ok(snapshot) if snapshot.id.to_string() != name && label(&snapshot) != name => {
            Err(unknown(door, name).await?)
        }
        Ok(snapshot) => Ok(Template::Snapshot(snapshot.id)),
        Err(problem) if problem.code == Code::NotFound => Err(unknown(door, name).await?),
        Err(problem) => Err(problem.into()),
    }
}

/// With those there are: the newest snapshots, and how many more.
async fn unknown(door: &E2b, name: &str) -> Result<Failure, Failure> {
    let mut known = vec![BASE.to_owned(), INTERPRETER.to_owned()];
    let snapshots = snapshots(door).await?;
    known.extend(snapshots.iter().rev().take(SHOWN).map(label));
    let more = snapshots.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(", and {more} more snapshots") };
    Ok(Failure::not_found(format!("template `{name}` was not found; there are {}{more}", known.join(", "))))
}

async fn snapshots(door: &E2b) -> Result<Vec<Snapshot>, Failure> {
    let all = door.app.control.snapshots(None).await?;
    Ok(all.into_iter().filter(|snapshot| snapshot.reason.is_asked()).collect())
}

fn label(snapshot: &Snapshot) -> String {
    snapshot.name.as_ref().map_or_else(|| snapshot.id.to_string(), ToString::to_string)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    #[serde(rename = "templateID")]
    template: String,
    #[serde(rename = "buildID")]
    build: String,
    cpu_count: u64,
    #[serde(rename = "memoryMB")]
    memory: u64,
    #[serde(rename = "diskSizeMB")]
    disk: u64,
    public: bool,
    aliases: Vec<String>,
    names: Vec<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    created_by: Option<String>,
    last_spawned_at: Option<Timestamp>,
    spawn_count: u64,
    build_count: u64,
    envd_version: &'static str,
    build_status: &'static str,
}

pub(super) async fn list(State(door): State<E2b>) -> Result<Json<Vec<Shown>>, Failure> {
    let machine = shown(BASE.to_owned(), vec![BASE.to_owned(), INTERPRETER.to_owned()], Timestamp::now());
    let of_snapshots = snapshots(&door).await?.into_iter().map(|snapshot| {
        shown(
            snapshot.id.to_string(),
            snapshot.name.iter().map(ToString::to_string).collect(),
            snapshot.created,
        )
    });
    Ok(Json(std::iter::once(machine).chain(of_snapshots).collect()))
}

fn shown(id: String, names: Vec<String>, made: Timestamp) -> Shown {
    let Share { cpus, memory, disk } = Share::within(&Limits::default());
    Shown {
        build: id.clone(),
        template: id,
        cpu_count: cpus,
        memory,
        disk,
        public: false,
        aliases: names.clone(),
        names,
        created_at: made,
        updated_at: made,
        created_by: None,
        last_spawned_at: None,
        spawn_count: 0,
        build_count: 1,
        envd_version: envd::VERSION,
        build_status: "ready",
    }
}

/// Does a name lead anywhere?
#[derive(Debug, Serialize)]
pub(super) struct Alias {
    #[serde(rename = "templateID")]
    template: String,
    public: bool,
}

pub(super) async fn alias(State(door): State<E2b>, Path(name): Path<String>) -> Result<Json<Alias>, Failure> {
    let template = match find(&door, &name).await? {
        Template::Machine => BASE.to_owned(),
        Template::Snapshot(id) => id.to_string(),
    };
    Ok(Json(Alias { template, public: false }))
}

/// Removes a snapshot. What was made of it stays whole.
pub(super) async fn remove(State(door): State<E2b>, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    match find(&door, &name).await? {
        Template::Machine => Err(Failure::new(
            StatusCode::FORBIDDEN,
            format!("`{name}` is this machine as it is and cannot be removed"),
        )),
        Template::Snapshot(id) => {
            door.app.control.remove_snapshot(&id.to_string(), Actor::default()).await?;
            Ok(StatusCode::NO_CONTENT)
        }
    }
}

/// The template of a sandbox for which none is named.
pub(super) const BASE: &str = "base";
/// What E2B's code interpreter asks for. The machine's own Python is that of `base`.
const INTERPRETER: &str = "code-interpreter-v1";
const SHOWN: usize = 20;
