//! The records of races.

use model::race::Race;
use rusqlite::{Connection, params};

use super::Error;
use super::rows::json;

pub(super) struct NewRow {
    race: Race,
    record: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(race: Race) -> Result<Self, Error> {
        let id = race.id;
        let record = serde_json::to_string(&race).map_err(|source| Error::EncodeRace { id, source })?;
        Ok(Self { race, record })
    }
}

/// Writes it, and forgets the oldest beyond so many.
pub(super) fn insert(connection: &Connection, row: &NewRow, kept: usize) -> Result<(), Error> {
    let Race { id, created, .. } = &row.race;
    let write = || -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare_cached("INSERT INTO races (id, created, record) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![id.to_string(), created.as_microsecond(), row.record])?;
        let mut statement = connection.prepare_cached(
            "DELETE FROM races WHERE id NOT IN (SELECT id FROM races ORDER BY created DESC, id LIMIT ?1)",
        )?;
        statement.execute([i64::try_from(kept).unwrap_or(i64::MAX)])?;
        Ok(())
    };
    write().map_err(|source| Error::InsertRace { id: *id, source })
}

/// Oldest first.
pub(super) fn all(connection: &Connection) -> Result<Vec<Race>, Error> {
    let read = || -> rusqlite::Result<Vec<Race>> {
        let mut statement = connection.prepare_cached("SELECT record FROM races ORDER BY created, id")?;
        statement.query_map([], |row| json(row, 0))?.collect()
    };
    read().map_err(|source| Error::ListRaces { source })
}
