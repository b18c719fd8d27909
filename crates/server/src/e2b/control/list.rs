//! Looking: one sandbox, pages of them, what they use.

use std::collections::BTreeMap;
use std::time::Duration;

use ::control::Room;
use axum::Json;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use model::limits::Limits;
use model::sandbox::Usage;
use model::{Problem, Sandbox, State as Life};
use serde::Deserialize;

use super::create::{CLIENT, template_of};
use super::life::{find, is_running};
use super::pages::{Order, Paging, page};
use super::wire::{Detail, Lifecycle, Listed, Metric, OnTimeout, PauseMode, Standing};
use crate::e2b::E2b;
use crate::e2b::envd;
use crate::e2b::failure::Failure;
use crate::e2b::labels::{Noted, metadata};

pub(super) async fn one(State(door): State<E2b>, Path(id): Path<String>) -> Result<Json<Detail>, Failure> {
    let sandbox = find(&door, &id).await?;
    let noted = Noted::of(&sandbox.labels);
    let auto_pause = noted.as_ref().is_some_and(|noted| noted.auto_pause);
    let detail = Detail {
        envd_access_token: door.keys.token_of(sandbox.id),
        domain: door.domain.clone(),
        allow_internet_access: noted.as_ref().and_then(|noted| noted.internet),
        lifecycle: Lifecycle {
            auto_resume: noted.as_ref().is_some_and(|noted| noted.auto_resume),
            on_timeout: if auto_pause { OnTimeout::Pause } else { OnTimeout::Kill },
        },
        network: noted.and_then(|noted| noted.network),
        pause_mode: match sandbox.state {
            Life::Paused => Some(PauseMode::Full),
            _ if is_running(&sandbox) => None,
            _ => Some(PauseMode::Filesystem),
        },
        listed: listed(&sandbox),
    };
    Ok(Json(detail))
}

/// What a client may ask for. `state` may come more than once, or joined by commas.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Filter {
    metadata: Option<String>,
    order: Option<Order>,
    started_after: Option<Timestamp>,
    template: Option<String>,
    next_token: Option<String>,
    limit: Option<usize>,
}

/// Those that run, as the first version of the API has them.
pub(super) async fn all(
    State(door): State<E2b>,
    Query(filter): Query<Filter>,
) -> Result<Json<Vec<Listed>>, Failure> {
    let found = matching(&door, &filter, &[Standing::Running]).await?;
    Ok(Json(found.iter().map(listed).collect()))
}

pub(super) async fn pages(
    State(door): State<E2b>,
    Query(filter): Query<Filter>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let states = states(query.as_deref().unwrap_or(""))?;
    let found = matching(&door, &filter, &states).await?;
    // Newest first, as E2B's service tells them.
    let order = filter.order.unwrap_or(Order::Desc);
    let paging = Paging { limit: filter.limit, after: filter.next_token.as_deref(), order };
    let key = |sandbox: &Sandbox| key(sandbox.created, sandbox.id);
    let (items, next) = page(found, paging, key)?;
    let items: Vec<Listed> = items.iter().map(listed).collect();
    let next = next.map(|next| (NEXT, next));
    Ok((axum::response::AppendHeaders(next), Json(items)).into_response())
}

async fn matching(door: &E2b, filter: &Filter, states: &[Standing]) -> Result<Vec<Sandbox>, Failure> {
    let wanted = filter.metadata.as_deref().map(wanted_metadata).transpose()?.unwrap_or_default();
    let all = door.app.control.list(false).await?;
    // What others made of this machine is not listed: clients tidy up by killing all they see.
    let ours = all.into_iter().filter(|sandbox| Noted::of(&sandbox.labels).is_some());
    let fits = |sandbox: &Sandbox| {
        standing(sandbox).is_some_and(|standing| states.contains(&standing))
            && wanted.iter().all(|(name, value)| sandbox.labels.get(name) == Some(value))
            && filter.started_after.is_none_or(|after| sandbox.created >= after)
            && filter.template.as_ref().is_none_or(|template| template_of(sandbox) == *template)
    };
    Ok(ours.filter(fits).collect())
}

/// Sorts by time.
pub(super) fn key(created: Timestamp, id: impl std::fmt::Display) -> String {
    format!("{:020}-{id}", created.as_nanosecond().max(0))
}

/// None: E2B has no word for it, or it is on its way.
fn standing(sandbox: &Sandbox) -> Option<Standing> {
    match sandbox.state {
        Life::Ready | Life::Active => Some(Standing::Running),
        Life::Paused | Life::Stopped => Some(Standing::Paused),
        Life::Expired if Noted::of(&sandbox.labels).is_some_and(|noted| noted.auto_pause) => {
            Some(Standing::Paused)
        }
        Life::Requested
        | Life::Provisioning
        | Life::Unreachable
        | Life::Expired
        | Life::Failed
        | Life::Destroying
        | Life::Destroyed => None,
    }
}

/// Each name and value is coded once more than the query itself.
fn wanted_metadata(text: &str) -> Result<BTreeMap<String, String>, Failure> {
    let bad = || Failure::bad_request("`metadata` is not a coded list of names and values");
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text).map_err(|_not_a_query| bad())?;
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().map(String::from);
    let decoded = pairs.iter().map(|(name, value)| Ok((plain(name)?, plain(value)?)));
    decoded.collect::<Result<_, std::str::Utf8Error>>().map_err(|_not_text| bad())
}

fn states(query: &str) -> Result<Vec<Standing>, Failure> {
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(query).map_err(|error| Failure::bad_request(error.to_string()))?;
    let words = pairs.iter().filter(|(name, _)| name == "state").flat_map(|(_, words)| words.split(','));
    let states: Result<Vec<Standing>, Failure> = words
        .filter(|word| !word.is_empty())
        .map(|word| match word {
            "running" => Ok(Standing::Running),
            "paused" => Ok(Standing::Paused),
            other => Err(Failure::bad_request(format!("there is no state `{other}`: running or paused"))),
        })
        .collect();
    let states = states?;
    Ok(if states.is_empty() { vec![Standing::Running, Standing::Paused] } else { states })
}

pub(super) fn listed(sandbox: &Sandbox) -> Listed {
    let Share { cpus, memory, disk } = Share::within(&sandbox.limits);
    Listed {
        template: template_of(sandbox),
        id: sandbox.id.to_string(),
        client: CLIENT,
        started_at: sandbox.created,
        end_at: sandbox.expires.unwrap_or(Timestamp::MAX),
        cpu_count: cpus,
        memory,
        disk,
        // One that is on its way is told as what it will be.
        state: standing(sandbox).unwrap_or(Standing::Running),
        envd_version: envd::VERSION,
        metadata: metadata(&sandbox.labels),
    }
}

/// What a sandbox may use, in E2B's numbers: whole processors and MiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) cpus: u64,
    pub(super) memory: u64,
    pub(super) disk: u64,
}

impl Share {
    pub(super) fn within(limits: &Limits) -> Self {
        let Room { cpus, memory, disk } = Room::within(limits);
        Self { cpus: cpus.ceil() as u64, memory: memory.0 >> 20, disk: disk.0 >> 20 }
    }
}

/// What it uses now: zeno keeps no history of it.
pub(super) async fn metrics(
    State(door): State<E2b>,
    Path(id): Path<String>,
) -> Result<Json<Vec<Metric>>, Failure> {
    let sandbox = find(&door, &id).await?;
    if !is_running(&sandbox) {
        return Ok(Json(Vec::new()));
    }
    Ok(Json(vec![measured(&door, &id).await?]))
}

pub(in crate::e2b) async fn measured(door: &E2b, id: &str) -> Result<Metric, Problem> {
    let before = door.app.control.usage(id).await?;
    tokio::time::sleep(WATCHED).await;
    let now = door.app.control.usage(id).await?;
    Ok(metric(&before, &now))
}

fn metric(before: &Usage, now: &Usage) -> Metric {
    let elapsed = now.time.duration_since(before.time).as_secs_f64().max(f64::EPSILON);
    let used = now.cpu_nanoseconds.saturating_sub(before.cpu_nanoseconds) as f64 / 1e9;
    Metric {
        timestamp: now.time,
        timestamp_unix: now.time.as_second(),
        cpu_count: now.cpus.ceil() as u64,
        cpu_used_pct: (used / elapsed * 100.0 * 100.0).round() / 100.0,
        mem_used: now.memory.0,
        mem_total: now.memory_total.0,
        mem_cache: 0,
        disk_used: now.disk.0,
        disk_total: now.disk_total.0,
    }
}

pub(super) const NEXT: HeaderName = HeaderName::from_static("x-next-token");
/// Long enough to tell what it uses of a processor, short enough to wait for.
const WATCHED: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_coded_twice() {
        let wanted = wanted_metadata("k=v%2520w&a%2526b=c").unwrap();
        assert_eq!(
            wanted,
            BTreeMap::from([("k".to_owned(), "v w".to_owned()), ("a&b".to_owned(), "c".to_owned())])
        );
    }

    #[test]
    fn states_come_joined_or_apart() {
        let both = vec![Standing::Running, Standing::Paused];
        for query in ["", "limit=3", "state=running,paused", "state=running&state=paused"] {
            assert_eq!(states(query).unwrap(), both, "{query}");
        }
        assert_eq!(states("state=paused").unwrap(), [Standing::Paused]);
        assert!(states("state=gone").is_err());
    }
}
