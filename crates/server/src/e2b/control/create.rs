//! Making sandboxes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, http::HeaderName};
use model::exec::{Context, Variable};
use model::limits::{Limits, OnExpire};
use model::net::Net;
use model::sandbox::{Account, CreateRequest, WorkspaceChoice};
use model::snapshot::RestoreRequest;
use model::units::Span;
use model::{Sandbox, SandboxId};

use super::body::Body;
use super::templates::{self, Template};
use super::wire::{Made, NewSandbox};
use crate::e2b::E2b;
use crate::e2b::envd;
use crate::e2b::failure::Failure;
use crate::e2b::labels::{LABEL, Noted};

/// The requests that were answered not long ago, by the key their callers gave them.
#[derive(Debug, Default)]
pub(in crate::e2b) struct Recent(Mutex<VecDeque<(String, SandboxId)>>);

pub(super) async fn new(
    State(door): State<E2b>,
    headers: HeaderMap,
    Body(request): Body<NewSandbox>,
) -> Result<Response, Failure> {
    create(&door, &headers, request, DEFAULT_TIMEOUT).await
}

pub(super) async fn old(
    State(door): State<E2b>,
    headers: HeaderMap,
    Body(request): Body<NewSandbox>,
) -> Result<Response, Failure> {
    create(&door, &headers, request, OLD_TIMEOUT).await
}

async fn create(
    door: &E2b,
    headers: &HeaderMap,
    request: NewSandbox,
    timeout: u64,
) -> Result<Response, Failure> {
    let key = headers.get(IDEMPOTENCY).and_then(|key| key.to_str().ok());
    if let Some(id) = key.and_then(|key| door.recent.find(key)) {
        // Asked again, because its answer was lost on the way.
        let sandbox = door.app.control.get(&id.to_string()).await?;
        return Ok((StatusCode::CREATED, Json(made(door, &sandbox))).into_response());
    }
    let sandbox = make(door, request, timeout).await?;
    if let Some(key) = key {
        door.recent.remember(key, sandbox.id);
    }
    Ok((StatusCode::CREATED, Json(made(door, &sandbox))).into_response())
}

async fn make(door: &E2b, request: NewSandbox, timeout: u64) -> Result<Sandbox, Failure> {
    request.refuse_unsupported()?;
    let metadata = request.metadata.unwrap_or_default();
    if metadata.contains_key(LABEL) {
        return Err(Failure::bad_request(format!(
            "`{LABEL}` is no name for metadata: zeno keeps its own there"
        )));
    }
    let network = request.network.unwrap_or_default();
    let policy = network.policy(request.internet)?;
    let auto_pause = request.auto_pause.unwrap_or(false);
    if auto_pause && request.auto_pause_memory == Some(true) {
        tracing::debug!("a sandbox whose time is over keeps its files, not its memory");
    }
    let wanted = request.template.as_deref().unwrap_or(templates::BASE);
    let template = templates::find(door, wanted).await?;
    let noted = Noted {
        template: wanted.to_owned(),
        auto_pause,
        auto_resume: request.auto_resume.unwrap_or_default().enabled,
        internet: request.internet,
        network: network.noted(),
    };
    let labels = noted.with(metadata);
    let limits = Limits {
        ttl: Some(seconds(timeout_of(request.timeout, timeout))),
        on_expire: Some(if auto_pause { OnExpire::Stop } else { OnExpire::Destroy }),
        ..Limits::default()
    };
    let variables = request.env_vars.unwrap_or_default();
    let made = match template {
        Template::Machine => {
            let request = CreateRequest {
                workspace: WorkspaceChoice::None,
                net: Net::Gateway(policy),
                limits,
                labels,
                account: Some(account()),
                context: context(&variables),
                consumer: Some(CONSUMER.to_owned()),
                ..CreateRequest::default()
            };
            door.app.control.create(request, &|_progress| ()).await?
        }
        Template::Snapshot(id) => {
            let request = RestoreRequest {
                net: Some(Net::Gateway(policy)),
                limits,
                labels,
                env: self::variables(&variables).collect(),
                ..RestoreRequest::default()
            };
            door.app.control.restore(&id.to_string(), request).await?
        }
    };
    Ok(made)
}

/// What whoever made, joined or forked a sandbox is told.
pub(super) fn made(door: &E2b, sandbox: &Sandbox) -> Made {
    let is_closed = Noted::of(&sandbox.labels).is_some_and(|noted| !noted.is_public());
    Made {
        template: template_of(sandbox),
        id: sandbox.id.to_string(),
        client: CLIENT,
        envd_version: envd::VERSION,
        envd_access_token: door.keys.token_of(sandbox.id),
        traffic_access_token: is_closed.then(|| door.keys.traffic_token_of(sandbox.id)),
        domain: door.domain.clone(),
    }
}

/// One that was not made through this door is the machine's.
pub(super) fn template_of(sandbox: &Sandbox) -> String {
    Noted::of(&sandbox.labels).map_or_else(|| templates::BASE.to_owned(), |noted| noted.template)
}

/// A number of seconds that can be lived. None is for ever here, but not there.
pub(super) fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds.clamp(1, LONGEST))
}

pub(super) fn timeout_of(asked: Option<u64>, default: u64) -> u64 {
    asked.unwrap_or(default)
}

/// The user that E2B's templates have.
fn account() -> Account {
    Account { name: "user".to_owned(), home: "/home/user".into() }
}

/// Nobody's shell is at the other end: what programs need to be found, and no more of the daemon's own surroundings.
fn context(variables: &BTreeMap<String, String>) -> Context {
    let ours = model::env::variables().into_iter().filter(|variable| {
        let name = variable.name.display();
        ["PATH", "LANG", "TZ"].contains(&&*name) || name.starts_with("LC_")
    });
    let told = Variable { name: "E2B_SANDBOX".into(), value: "true".into() };
    Context { env: ours.chain([told]).chain(self::variables(variables)).collect(), ..Context::default() }
}

fn variables(variables: &BTreeMap<String, String>) -> impl Iterator<Item = Variable> {
    variables
        .iter()
        .map(|(name, value)| Variable { name: name.as_str().into(), value: value.as_str().into() })
}

impl Recent {
    fn find(&self, key: &str) -> Option<SandboxId> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = kept(key);
        recent.iter().find(|(known, _)| *known == key).map(|(_, id)| *id)
    }

    fn remember(&self, key: &str, id: SandboxId) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back((kept(key), id));
    }
}

/// As much of a key as is remembered.
fn kept(key: &str) -> String {
    key.chars().take(LONGEST_KEY).collect()
}

const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) const CLIENT: &str = "zeno";
const CONSUMER: &str = "e2b";
/// What E2B's service gives a sandbox that nobody gave a time, in seconds, and what its first version gave.
pub(super) const DEFAULT_TIMEOUT: u64 = 300;
const OLD_TIMEOUT: u64 = 15;
/// A year.
const LONGEST: u64 = 366 * 86_400;
const REMEMBERED: usize = 1024;
const LONGEST_KEY: usize = 256;
