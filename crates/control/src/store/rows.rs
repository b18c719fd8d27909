//! Reading records and events, and the changes that are not moves.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::event::{Event, EventData};
use model::exec::Text;
use model::net::Net;
use model::sandbox::{Backend, CreateRequest};
use model::{Sandbox, SandboxId, State};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::{Error, Which, requests};

/// What `sandboxes.throwaway` says.
pub(super) const KEPT: i64 = 0;
pub(super) const THROWAWAY: i64 = 1;
pub(super) const TRACELESS: i64 = 2;

/// A sandbox, and what is kept about it beside what users see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any of them may hold together"
)]
pub struct Record {
    pub sandbox: Sandbox,
    /// A command has run in it since it was last made or started.
    pub used: bool,
    /// Made for one command: it does not outlive the daemon that ran it.
    pub throwaway: bool,
    /// A throwaway whose command only looks at a snapshot, as a check does: what it writes is never kept.
    pub traceless: bool,
    /// Its processes were ended to change what it stands on, and are to be made anew.
    pub restarting: bool,
}

pub(super) fn record(connection: &Connection, id: SandboxId) -> Result<Option<Record>, Error> {
    let read = || -> rusqlite::Result<Option<Record>> {
        let mut statement = connection.prepare_cached(
            "SELECT id, name, state, reason, used, throwaway, created, changed, expires, workspace, caveats, request,
                    snapshot, restarting
             FROM sandboxes WHERE id = ?1",
        )?;
        statement.query_row([id.to_string()], from_row).optional()
    };
    read().map_err(|source| Error::Read { id, source })
}

pub(super) fn records(connection: &Connection, which: Which) -> Result<Vec<Record>, Error> {
    let query = match which {
        Which::Existing => {
            "SELECT id, name, state, reason, used, throwaway, created, changed, expires, workspace, caveats, request,
                    snapshot, restarting
             FROM sandboxes WHERE state <> 'destroyed' ORDER BY created, id"
        }
        Which::All => {
            "SELECT id, name, state, reason, used, throwaway, created, changed, expires, workspace, caveats, request,
                    snapshot, restarting
             FROM sandboxes ORDER BY created, id"
        }
    };
    let read = || -> rusqlite::Result<Vec<Record>> {
        connection.prepare_cached(query)?.query_map([], from_row)?.collect()
    };
    read().map_err(|source| Error::List { source })
}

pub(super) fn request(connection: &Connection, id: SandboxId) -> Result<Option<CreateRequest>, Error> {
    let read = || -> rusqlite::Result<Option<CreateRequest>> {
        let mut statement = connection.prepare_cached(
            "SELECT request, variables FROM sandboxes JOIN environments ON environments.sandbox = id WHERE id = ?1",
        )?;
        let decode = |row: &Row<'_>| {
            let mut request: CreateRequest = json(row, 0)?;
            request.context.env = json(row, 1)?;
            Ok(request)
        };
        statement.query_row([id.to_string()], decode).optional()
    };
    read().map_err(|source| Error::Read { id, source })
}

/// The same without its environment, which is never written down of a throwaway.
pub(super) fn bare_request(connection: &Connection, id: SandboxId) -> Result<Option<CreateRequest>, Error> {
    let read = || -> rusqlite::Result<Option<CreateRequest>> {
        let mut statement = connection.prepare_cached("SELECT request FROM sandboxes WHERE id = ?1")?;
        statement.query_row([id.to_string()], |row| json(row, 0)).optional()
    };
    read().map_err(|source| Error::Read { id, source })
}

pub(super) fn set_expires(connection: &Connection, id: SandboxId, expires: Timestamp) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached("UPDATE sandboxes SET expires = ?2 WHERE id = ?1")?;
        statement.execute(params![id.to_string(), expires.as_microsecond()])
    };
    found(id, write())
}

/// Writes down what a sandbox may reach from now on, and its labels, which may tell of it.
pub(super) fn set_net(
    connection: &Connection,
    id: SandboxId,
    net: &Net,
    labels: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let Some(mut request) = bare_request(connection, id)? else { return Err(Error::NoSandbox { id }) };
    (request.net, request.labels) = (net.clone(), labels.clone());
    let text = serde_json::to_string(&request).map_err(|source| Error::EncodeRequest { source })?;
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached("UPDATE sandboxes SET request = ?2 WHERE id = ?1")?;
        statement.execute(params![id.to_string(), text])
    };
    found(id, write())
}

pub(super) fn set_restarting(connection: &Connection, id: SandboxId, restarting: bool) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement =
            connection.prepare_cached("UPDATE sandboxes SET restarting = ?2 WHERE id = ?1")?;
        statement.execute(params![id.to_string(), restarting])
    };
    found(id, write())
}

pub(super) fn note(connection: &Connection, id: SandboxId, reason: &str) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached("UPDATE sandboxes SET reason = ?2 WHERE id = ?1")?;
        statement.execute(params![id.to_string(), reason])
    };
    found(id, write())
}

pub(super) fn events(connection: &Connection, after: u64, limit: usize) -> Result<Vec<Event>, Error> {
    // A cursor beyond what SQLite can count is beyond every event.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let read = || -> rusqlite::Result<Vec<Event>> {
        let mut statement = connection.prepare_cached(
            "SELECT sequence, time, transition FROM events WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
        )?;
        let decode = |row: &Row<'_>| {
            Ok(Event::of(row.get::<_, i64>(0)? as u64, time(row, 1)?, json::<EventData>(row, 2)?))
        };
        statement.query_map([after, limit], decode)?.collect()
    };
    read().map_err(|source| Error::Events { source })
}

pub(super) fn prune(connection: &Connection) -> Result<(), Error> {
    let write = || -> rusqlite::Result<()> {
        connection.execute(
            "DELETE FROM sandboxes WHERE state = 'destroyed' AND id NOT IN
             (SELECT id FROM sandboxes WHERE state = 'destroyed' ORDER BY changed DESC, id LIMIT ?1)",
            [DESTROYED_KEPT],
        )?;
        connection.execute(
            "DELETE FROM events WHERE sequence <= (SELECT max(sequence) FROM events) - ?1",
            [EVENTS_KEPT],
        )?;
        requests::prune(connection, requests::MOST)
    };
    write().map_err(|source| Error::Prune { source })
}

fn found(id: SandboxId, changed: rusqlite::Result<usize>) -> Result<(), Error> {
    match changed {
        Ok(0) => Err(Error::NoSandbox { id }),
        Ok(_) => Ok(()),
        Err(source) => Err(Error::Update { id, source }),
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Record> {
    let request: CreateRequest = json(row, 11)?;
    let sandbox = Sandbox {
        id: parsed(row, 0)?,
        name: maybe(row, 1)?,
        state: state(row, 2)?,
        reason: row.get(3)?,
        backend: Backend::Native,
        created: time(row, 6)?,
        changed: time(row, 7)?,
        expires: row.get::<_, Option<i64>>(8)?.map(|_set| time(row, 8)).transpose()?,
        workspace: row.get::<_, Option<Vec<u8>>>(9)?.map(Text),
        cwd: request.context.cwd,
        net: request.net,
        limits: request.limits,
        labels: request.labels,
        actor: request.actor,
        consumer: request.consumer,
        caveats: json(row, 10)?,
        snapshot: maybe(row, 12)?,
    };
    let throwaway: i64 = row.get(5)?;
    Ok(Record {
        sandbox,
        used: row.get(4)?,
        throwaway: throwaway != KEPT,
        traceless: throwaway == TRACELESS,
        restarting: row.get(13)?,
    })
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let word: String = row.get(column)?;
    State::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| wrong(column, UnknownState { word }))
}

/// Something that is written as text, or nothing.
pub(super) fn maybe<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse()).transpose().map_err(|bad| wrong(column, bad))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(row.get(column)?).map_err(|bad| wrong(column, bad))
}

pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    row.get::<_, String>(column)?.parse().map_err(|bad| wrong(column, bad))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|bad| wrong(column, bad))
}

pub(super) fn wrong(column: usize, cause: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(cause))
}

#[derive(Debug, thiserror::Error)]
#[error("`{word}` is not a state")]
struct UnknownState {
    word: String,
}

/// Destroyed sandboxes that `zeno list --all` remembers.
const DESTROYED_KEPT: i64 = 1_000;
/// Events that a subscriber who was away can still read.
const EVENTS_KEPT: i64 = 10_000;
