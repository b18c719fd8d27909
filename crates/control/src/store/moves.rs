//! The only code that writes a sandbox's state: its first one, and every move from one to the next.

use jiff::Timestamp;
use model::event::{Event, EventData, Transition};
use model::exec::Text;
use model::sandbox::{Actor, Backend, CreateRequest};
use model::{Caveat, Sandbox, SandboxId, SnapshotId, State};
use rusqlite::{Connection, params};

use super::ledger::Page;
use super::rows::{self, KEPT, Record, THROWAWAY, TRACELESS};
use super::{Error, now};

/// A sandbox that does not exist yet.
#[derive(Clone, Debug)]
pub struct NewRecord {
    pub id: SandboxId,
    pub request: CreateRequest,
    pub expires: Option<Timestamp>,
    pub throwaway: bool,
    /// What it is made from.
    pub snapshot: Option<SnapshotId>,
}

/// Where a sandbox goes, why, and what was learned on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    path: Vec<State>,
    reason: Option<String>,
    by: Option<Actor>,
    facts: Facts,
}

/// What is known only once a sandbox was made. What is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub workspace: Option<Text>,
    pub caveats: Option<Vec<Caveat>>,
    pub expires: Option<Timestamp>,
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub sandbox: Sandbox,
    /// One for each state on the way.
    pub events: Vec<Event>,
}

impl Move {
    #[must_use]
    pub fn to(state: State) -> Self {
        Self { path: vec![state], reason: None, by: None, facts: Facts::default() }
    }

    /// The states it goes through, in order.
    #[must_use]
    pub fn path(&self) -> &[State] {
        &self.path
    }

    /// And on to this one, in the same transaction.
    #[must_use]
    pub fn then(mut self, state: State) -> Self {
        self.path.push(state);
        self
    }

    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Nobody asked for it: zeno decided by itself.
    #[must_use]
    pub fn by_zeno(mut self) -> Self {
        self.by = Some(Actor::Atm);
        self
    }

    #[must_use]
    pub fn with(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }
}

/// A new record as it goes into the tables.
pub(super) struct NewRow {
    sandbox: Sandbox,
    throwaway: i64,
    request: String,
    variables: Option<String>,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(new: NewRecord) -> Result<Self, Error> {
        let NewRecord { id, mut request, expires, throwaway, snapshot } = new;
        let encode = |source| Error::Encode { id, source };
        let variables = std::mem::take(&mut request.context.env);
        // A throwaway is never started again, and nobody takes it over.
        let variables =
            (!throwaway).then(|| serde_json::to_string(&variables)).transpose().map_err(encode)?;
        let encoded = serde_json::to_string(&request).map_err(encode)?;
        let sandbox = Sandbox { snapshot, ..first_look(id, request, expires) };
        // One that was made of a snapshot only looks at it.
        let throwaway = match (throwaway, snapshot) {
            (false, _) => KEPT,
            (true, None) => THROWAWAY,
            (true, Some(_)) => TRACELESS,
        };
        Ok(Self { sandbox, throwaway, request: encoded, variables })
    }
}

pub(super) fn insert(page: &mut Page<'_>, row: NewRow) -> Result<Sandbox, Error> {
    let sandbox = &row.sandbox;
    write_new(page.connection, &row).map_err(|source| match (&sandbox.name, &source) {
        (Some(name), rusqlite::Error::SqliteFailure(failure, _))
            if failure.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE =>
        {
            Error::NameTaken { name: name.clone() }
        }
        _ => Error::Insert { id: sandbox.id, source },
    })?;
    let asked = event_data(sandbox, None, State::Requested, None, sandbox.actor);
    let begun = event_data(sandbox, Some(State::Requested), State::Provisioning, None, sandbox.actor);
    for data in [asked, begun] {
        append(page, sandbox.created, data)?;
    }
    Ok(row.sandbox)
}

fn write_new(connection: &Connection, row: &NewRow) -> rusqlite::Result<()> {
    let sandbox = &row.sandbox;
    let mut statement = connection.prepare_cached(
        "INSERT INTO sandboxes (id, name, state, used, throwaway, created, changed, expires, caveats, request, snapshot)
         VALUES (?1, ?2, ?3, 0, ?4, ?5, ?5, ?6, '[]', ?7, ?8)",
    )?;
    statement.execute(params![
        sandbox.id.to_string(),
        sandbox.name.as_ref().map(model::Name::as_str),
        sandbox.state.as_str(),
        row.throwaway,
        sandbox.created.as_microsecond(),
        sandbox.expires.map(Timestamp::as_microsecond),
        row.request,
        sandbox.snapshot.map(|snapshot| snapshot.to_string()),
    ])?;
    if let Some(variables) = &row.variables {
        let mut statement =
            connection.prepare_cached("INSERT INTO environments (sandbox, variables) VALUES (?1, ?2)")?;
        statement.execute(params![sandbox.id.to_string(), variables])?;
    }
    Ok(())
}

pub(super) fn transition(page: &mut Page<'_>, id: SandboxId, change: &Move) -> Result<Moved, Error> {
    let record = rows::record(page.connection, id)?.ok_or(Error::NoSandbox { id })?;
    let Record { mut sandbox, mut used, .. } = record;
    let time = now();
    let actor = change.by.unwrap_or(sandbox.actor);
    let first = page.events.len();
    for &to in &change.path {
        let from = sandbox.state;
        if !from.can_become(to) {
            return Err(Error::Refused { id, from, to });
        }
        append(page, time, event_data(&sandbox, Some(from), to, change.reason.clone(), actor))?;
        sandbox.state = to;
        match to {
            State::Active => used = true,
            State::Provisioning => used = false,
            _ => {}
        }
    }
    sandbox.reason.clone_from(&change.reason);
    sandbox.changed = time;
    sandbox.workspace = change.facts.workspace.clone().or(sandbox.workspace);
    sandbox.expires = change.facts.expires.or(sandbox.expires);
    if let Some(caveats) = &change.facts.caveats {
        sandbox.caveats.clone_from(caveats);
    }
    let caveats = serde_json::to_string(&sandbox.caveats).map_err(|source| Error::Encode { id, source })?;
    write_row(page.connection, &sandbox, used, &caveats).map_err(|source| Error::Transition {
        id,
        to: sandbox.state,
        source,
    })?;
    Ok(Moved { sandbox, events: page.events[first..].to_vec() })
}

fn write_row(connection: &Connection, sandbox: &Sandbox, used: bool, caveats: &str) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "UPDATE sandboxes SET state = ?2, reason = ?3, used = ?4, changed = ?5, expires = ?6, workspace = ?7, caveats = ?8,
                restarting = 0
         WHERE id = ?1",
    )?;
    statement.execute(params![
        sandbox.id.to_string(),
        sandbox.state.as_str(),
        sandbox.reason,
        used,
        sandbox.changed.as_microsecond(),
        sandbox.expires.map(Timestamp::as_microsecond),
        sandbox.workspace.as_ref().map(|workspace| &workspace.0),
        caveats,
    ])?;
    if sandbox.state == State::Destroyed {
        // No secret outlives the sandbox it was given to.
        let mut statement = connection.prepare_cached("DELETE FROM environments WHERE sandbox = ?1")?;
        statement.execute([sandbox.id.to_string()])?;
    }
    Ok(())
}

fn append(page: &mut Page<'_>, time: Timestamp, data: Transition) -> Result<(), Error> {
    let (id, to) = (data.sandbox, data.to);
    let text = serde_json::to_string(&data).map_err(|source| Error::Encode { id, source })?;
    let written = write_event(page, time, &text, data.into());
    written.map_err(|source| Error::Transition { id, to, source })
}

pub(super) fn write_event(
    page: &mut Page<'_>,
    time: Timestamp,
    text: &str,
    data: EventData,
) -> rusqlite::Result<()> {
    let mut statement =
        page.connection.prepare_cached("INSERT INTO events (time, transition) VALUES (?1, ?2)")?;
    let sequence = statement.insert(params![time.as_microsecond(), text])?;
    page.events.push(Event::of(sequence as u64, time, data));
    Ok(())
}

fn event_data(
    sandbox: &Sandbox,
    from: Option<State>,
    to: State,
    reason: Option<String>,
    actor: Actor,
) -> Transition {
    Transition {
        sandbox: sandbox.id,
        name: sandbox.name.clone(),
        from,
        to,
        reason,
        actor,
        consumer: sandbox.consumer.clone(),
    }
}

fn first_look(id: SandboxId, request: CreateRequest, expires: Option<Timestamp>) -> Sandbox {
    let time = now();
    Sandbox {
        id,
        name: request.name,
        state: State::Provisioning,
        reason: None,
        backend: Backend::Native,
        created: time,
        changed: time,
        expires,
        workspace: None,
        cwd: request.context.cwd,
        net: request.net.clone(),
        limits: request.limits,
        labels: request.labels,
        actor: request.actor,
        consumer: request.consumer,
        caveats: Vec::new(),
        snapshot: None,
    }
}
