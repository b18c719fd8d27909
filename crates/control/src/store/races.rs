//! The records of races.

use model::RaceId;
use model::event::RaceEnded;
use model::race::Race;
use rusqlite::{Connection, params};

use super::ledger::Page;
use super::moves::write_event;
use super::rows::{json, parsed};
use super::{Error, now};

pub(super) struct NewRow {
    race: Race,
    record: String,
    event: RaceEnded,
    event_text: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(race: Race) -> Result<Self, Error> {
        let id = race.id;
        let record = serde_json::to_string(&race).map_err(|source| Error::EncodeRace { id, source })?;
        let event = RaceEnded {
            race: id,
            winner: race.winner.clone(),
            winner_sandbox: race.winner_sandbox,
            candidates: race.entries.len() as u64,
            actor: race.actor,
        };
        let event_text = serde_json::to_string(&event).map_err(|source| Error::EncodeRace { id, source })?;
        Ok(Self { race, record, event, event_text })
    }
}

/// Writes it, forgets the oldest beyond so many, and says which.
pub(super) fn insert(page: &mut Page<'_>, row: &NewRow, kept: usize) -> Result<Vec<RaceId>, Error> {
    let Race { id, created, .. } = &row.race;
    let write = |page: &mut Page<'_>| -> rusqlite::Result<Vec<RaceId>> {
        let mut statement =
            page.connection.prepare_cached("INSERT INTO races (id, created, record) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![id.to_string(), created.as_microsecond(), row.record])?;
        let mut statement = page.connection.prepare_cached(
            "DELETE FROM races WHERE id NOT IN (SELECT id FROM races ORDER BY created DESC, id LIMIT ?1) \
             RETURNING id",
        )?;
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let forgotten = statement.query_map([kept], |row| parsed(row, 0))?.collect::<Result<_, _>>()?;
        drop(statement);
        write_event(page, now(), &row.event_text, row.event.clone().into())?;
        Ok(forgotten)
    };
    write(page).map_err(|source| Error::InsertRace { id: *id, source })
}

/// Oldest first.
pub(super) fn all(connection: &Connection) -> Result<Vec<Race>, Error> {
    let read = || -> rusqlite::Result<Vec<Race>> {
        let mut statement = connection.prepare_cached("SELECT record FROM races ORDER BY created, id")?;
        statement.query_map([], |row| json(row, 0))?.collect()
    };
    read().map_err(|source| Error::ListRaces { source })
}
