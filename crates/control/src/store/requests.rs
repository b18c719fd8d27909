//! What sandboxes tried to reach.

use model::SandboxId;
use model::net::Verdict;
use model::request::Request;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Error;
use super::rows::json;

pub(super) struct NewRow {
    sandbox: String,
    denied: bool,
    name: Option<String>,
    record: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(request: &Request) -> Result<Self, Error> {
        let record = serde_json::to_string(request).map_err(|source| Error::EncodeRequest { source })?;
        let denied = request.verdict == Verdict::Deny;
        Ok(Self { sandbox: request.sandbox.to_string(), denied, name: request.name.clone(), record })
    }
}

pub(super) fn insert(connection: &Connection, row: &NewRow) -> Result<u64, Error> {
    let write = || -> rusqlite::Result<i64> {
        let mut statement = connection
            .prepare_cached("INSERT INTO requests (sandbox, denied, name, record) VALUES (?1, ?2, ?3, ?4)")?;
        statement.insert(params![row.sandbox, row.denied, row.name, row.record])
    };
    write().map(|id| id as u64).map_err(|source| Error::WriteRequest { source })
}

pub(super) fn write(connection: &Connection, id: u64, row: &NewRow) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement =
            connection.prepare_cached("UPDATE requests SET record = ?2, denied = ?3 WHERE id = ?1")?;
        statement.execute(params![id as i64, row.record, row.denied])
    };
    // One that was forgotten meanwhile needs no writing.
    write().map(drop).map_err(|source| Error::WriteRequest { source })
}

/// Which of them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Only those after this one.
    pub after: u64,
    /// At most so many: the last, unless `after` is given.
    pub limit: usize,
    pub sandbox: Option<SandboxId>,
    pub denied: bool,
    /// Of this name, or of one below it.
    pub name: Option<String>,
}

/// Oldest first.
pub(super) fn read(connection: &Connection, which: &Requests) -> Result<Vec<Request>, Error> {
    // From a cursor on, the first of them; else the last.
    let order = if which.after == 0 { "DESC" } else { "ASC" };
    let read = || -> rusqlite::Result<Vec<Request>> {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT id, record FROM requests
             WHERE id > ?1 AND (?2 IS NULL OR sandbox = ?2) AND (NOT ?3 OR denied)
               AND (?4 IS NULL OR name = ?4 OR substr(name, -length(?4) - 1) = '.' || ?4)
             ORDER BY id {order} LIMIT ?5"
        ))?;
        let after = i64::try_from(which.after).unwrap_or(i64::MAX);
        let limit = i64::try_from(which.limit).unwrap_or(i64::MAX);
        let sandbox = which.sandbox.map(|id| id.to_string());
        let rows = statement.query_map(params![after, sandbox, which.denied, which.name, limit], decode)?;
        rows.collect()
    };
    let mut found = read().map_err(|source| Error::ListRequests { source })?;
    if which.after == 0 {
        found.reverse();
    }
    Ok(found)
}

pub(super) fn one(connection: &Connection, id: u64) -> Result<Option<Request>, Error> {
    let read = || -> rusqlite::Result<Option<Request>> {
        let mut statement = connection.prepare_cached("SELECT id, record FROM requests WHERE id = ?1")?;
        statement.query_row([i64::try_from(id).unwrap_or(i64::MAX)], decode).optional()
    };
    read().map_err(|source| Error::ListRequests { source })
}

/// In the order of their numbers, which leave none out.
pub(super) fn given_names(connection: &Connection, sandbox: SandboxId) -> Result<Vec<String>, Error> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement =
            connection.prepare_cached("SELECT name FROM given_names WHERE sandbox = ?1 ORDER BY number")?;
        statement.query_map([sandbox.to_string()], |row| row.get(0))?.collect()
    };
    read().map_err(|source| Error::ListRequests { source })
}

pub(super) fn give_name(
    connection: &Connection,
    sandbox: SandboxId,
    number: u32,
    name: &str,
) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection
            .prepare_cached("INSERT INTO given_names (sandbox, number, name) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![sandbox.to_string(), number, name])
    };
    write().map(drop).map_err(|source| Error::WriteRequest { source })
}

fn decode(row: &Row<'_>) -> rusqlite::Result<Request> {
    let id = row.get::<_, i64>(0)? as u64;
    Ok(Request { id, ..json(row, 1)? })
}
