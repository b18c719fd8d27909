//! What sandboxes tried to reach.
//!
//! Texts of bodies stand apart from the rest of a record, in the last column: they are much, and only who looks at one request
//! reads them.

use std::net::IpAddr;

use model::SandboxId;
use model::net::Verdict;
use model::request::{End, Request};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::Error;
use super::rows::json;

pub(super) struct NewRow {
    sandbox: String,
    denied: bool,
    is_open: bool,
    name: Option<String>,
    address: Option<String>,
    host: Option<String>,
    record: String,
    texts: Option<String>,
}

/// What bodies began with.
#[derive(Serialize, Deserialize)]
struct Texts {
    request: Option<String>,
    response: Option<String>,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(request: &Request) -> Result<Self, Error> {
        let (mut bare, mut texts) = (request.clone(), None);
        if let Some(http) = bare.http.as_mut() {
            let response = http.response.as_mut().and_then(|response| response.text.take());
            texts = Some(Texts { request: http.request.text.take(), response })
                .filter(|texts| texts.request.is_some() || texts.response.is_some());
        }
        let encode = |source| Error::EncodeRequest { source };
        Ok(Self {
            sandbox: request.sandbox.to_string(),
            denied: request.verdict == Verdict::Deny,
            is_open: request.is_open(),
            name: request.name.clone(),
            address: request.address.map(|address| address.to_string()),
            host: request.http.as_ref().map(|http| http.host.clone()),
            record: serde_json::to_string(&bare).map_err(encode)?,
            texts: texts.map(|texts| serde_json::to_string(&texts)).transpose().map_err(encode)?,
        })
    }

    /// In the store, in bytes.
    pub(super) fn size(&self) -> usize {
        self.record.len() + self.texts.as_ref().map_or(0, String::len)
    }
}

pub(super) fn insert(connection: &Connection, row: &NewRow) -> Result<u64, Error> {
    let write = || -> rusqlite::Result<i64> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO requests (sandbox, size, denied, is_open, name, address, host, record, texts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let NewRow { sandbox, denied, is_open, name, address, host, record, texts } = row;
        statement.insert(params![
            sandbox,
            row.size() as i64,
            denied,
            is_open,
            name,
            address,
            host,
            record,
            texts
        ])
    };
    write().map(|id| id as u64).map_err(|source| Error::WriteRequest { source })
}

pub(super) fn write(connection: &Connection, id: u64, row: &NewRow) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(
            "UPDATE requests SET size = ?2, denied = ?3, is_open = ?4, address = ?5, record = ?6, texts = ?7
             WHERE id = ?1",
        )?;
        let NewRow { denied, is_open, address, record, texts, .. } = row;
        statement.execute(params![id as i64, row.size() as i64, denied, is_open, address, record, texts])
    };
    // One that was forgotten meanwhile needs no writing.
    write().map(drop).map_err(|source| Error::WriteRequest { source })
}

/// Which of them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Only those after this one, from there on. Without, the last there are.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: usize,
    pub sandbox: Option<SandboxId>,
    pub denied: bool,
    /// To this name or to one below it, or to this address.
    pub host: Option<String>,
}

impl Requests {
    /// Is it one of them, whatever its number?
    #[must_use]
    pub fn has(&self, request: &Request) -> bool {
        let is_below = |own: &str, name: &str| own.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let is_to = |host: &String| {
            let http = request.http.as_ref().map(|http| http.host.as_str());
            let mut names = [request.name.as_deref(), http].into_iter().flatten();
            names.any(|own| own == host || is_below(own, host))
                || request.address.is_some_and(|address| address.to_string() == *plain(host))
        };
        self.sandbox.is_none_or(|id| request.sandbox == id)
            && (!self.denied || request.verdict == Verdict::Deny)
            && self.host.as_ref().is_none_or(is_to)
    }
}

/// An address has many spellings.
fn plain(host: &str) -> String {
    host.parse::<IpAddr>().map_or_else(|_no_address| host.to_owned(), |address| address.to_string())
}

/// Oldest first, without the texts of bodies.
pub(super) fn read(connection: &Connection, which: &Requests) -> Result<Vec<Request>, Error> {
    let order = if which.after.is_none() { "DESC" } else { "ASC" };
    let read = || -> rusqlite::Result<Vec<Request>> {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT id, record FROM requests
             WHERE id > ?1 AND (?2 IS NULL OR sandbox = ?2) AND (NOT ?3 OR denied)
               AND (?4 IS NULL OR name = ?4 OR substr(name, -length(?4) - 1) = '.' || ?4
                    OR host = ?4 OR substr(host, -length(?4) - 1) = '.' || ?4 OR address = ?5)
             ORDER BY id {order} LIMIT ?6"
        ))?;
        let after = i64::try_from(which.after.unwrap_or(0)).unwrap_or(i64::MAX);
        let limit = i64::try_from(which.limit).unwrap_or(i64::MAX);
        let sandbox = which.sandbox.map(|id| id.to_string());
        let address = which.host.as_deref().map(plain);
        let values = params![after, sandbox, which.denied, which.host, address, limit];
        statement.query_map(values, decode)?.collect()
    };
    let mut found = read().map_err(|source| Error::ListRequests { source })?;
    if which.after.is_none() {
        found.reverse();
    }
    Ok(found)
}

/// With the texts of its bodies.
pub(super) fn one(connection: &Connection, id: u64) -> Result<Option<Request>, Error> {
    let decode = |row: &Row<'_>| -> rusqlite::Result<Request> {
        let mut request = decode(row)?;
        let texts: Option<Texts> =
            if row.get_ref(2)? == rusqlite::types::ValueRef::Null { None } else { Some(json(row, 2)?) };
        if let (Some(http), Some(texts)) = (request.http.as_mut(), texts) {
            http.request.text = texts.request;
            if let Some(response) = http.response.as_mut() {
                response.text = texts.response;
            }
        }
        Ok(request)
    };
    let read = || -> rusqlite::Result<Option<Request>> {
        let mut statement =
            connection.prepare_cached("SELECT id, record, texts FROM requests WHERE id = ?1")?;
        statement.query_row([i64::try_from(id).unwrap_or(i64::MAX)], decode).optional()
    };
    read().map_err(|source| Error::ListRequests { source })
}

/// Writes down of all that go on that they ended so, and says how many there were.
pub(super) fn end_all(connection: &Connection, end: &End) -> Result<usize, Error> {
    let end = serde_json::to_string(end).map_err(|source| Error::EncodeRequest { source })?;
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(
            "UPDATE requests SET record = json_set(record, '$.end', json(?1)), is_open = 0 WHERE is_open",
        )?;
        statement.execute([end])
    };
    write().map_err(|source| Error::WriteRequest { source })
}

/// Forgets the oldest: of each sandbox beyond its share, so that one which tries much does not take what is known of others
/// with it, and then of all.
pub(super) fn prune(connection: &Connection, most: Most) -> rusqlite::Result<()> {
    let sandboxes: Vec<String> = connection
        .prepare_cached(
            "SELECT sandbox FROM requests GROUP BY sandbox HAVING count(*) > ?1 OR sum(size) > ?2",
        )?
        .query_map([most.rows / SHARE, most.bytes / SHARE], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for sandbox in &sandboxes {
        connection.prepare_cached(&beyond("WHERE sandbox = ?3"))?.execute(params![
            most.rows / SHARE,
            most.bytes / SHARE,
            sandbox
        ])?;
    }
    connection.prepare_cached(&beyond(""))?.execute([most.rows, most.bytes])?;
    Ok(())
}

/// Deletes those of some, from the first on, counted from the last, that is beyond so many rows or bytes.
fn beyond(of: &str) -> String {
    format!(
        "DELETE FROM requests WHERE id IN (
             SELECT id FROM (
                 SELECT id, row_number() OVER latest AS rows, sum(size) OVER latest AS bytes
                 FROM requests {of} WINDOW latest AS (ORDER BY id DESC ROWS UNBOUNDED PRECEDING))
             WHERE rows > ?1 OR bytes > ?2)"
    )
}

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) rows: i64,
    pub(super) bytes: i64,
}

/// What sandboxes tried to reach, of which there may be thousands in a second.
pub(super) const MOST: Most = Most { rows: 100_000, bytes: 256 << 20 };
/// One sandbox has at most the so-manieth part.
const SHARE: i64 = 4;
/// So many bytes more than there may be are written before the oldest are forgotten.
pub(super) const SLACK: u64 = 32 << 20;

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

#[cfg(test)]
mod tests;
