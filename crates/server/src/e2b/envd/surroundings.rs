//! What a sandbox has: its share of the machine, and its environment.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Extension, State};
use serde::Serialize;

use crate::e2b::E2b;
use crate::e2b::control::measured;
use crate::e2b::failure::Failure;
use crate::e2b::meant::Inside;

#[derive(Debug, Serialize)]
pub(super) struct Metrics {
    /// Unix seconds.
    ts: i64,
    cpu_count: u64,
    cpu_used_pct: f64,
    mem_total: u64,
    mem_used: u64,
    mem_cache: u64,
    disk_used: u64,
    disk_total: u64,
}

pub(super) async fn metrics(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
) -> Result<Json<Metrics>, Failure> {
    let now = measured(&door, &inside.sandbox.id.to_string()).await?;
    Ok(Json(Metrics {
        ts: now.timestamp_unix,
        cpu_count: now.cpu_count,
        cpu_used_pct: now.cpu_used_pct,
        mem_total: now.mem_total,
        mem_used: now.mem_used,
        mem_cache: now.mem_cache,
        disk_used: now.disk_used,
        disk_total: now.disk_total,
    }))
}

/// Of a name that is given more than once, the last counts.
pub(super) async fn variables(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
) -> Result<Json<BTreeMap<String, String>>, Failure> {
    let variables = door.app.control.variables(&inside.sandbox.id.to_string()).await?;
    let pair = |variable: &model::exec::Variable| {
        (variable.name.display().into_owned(), variable.value.display().into_owned())
    };
    Ok(Json(variables.iter().map(pair).collect()))
}
