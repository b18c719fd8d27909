//! The records of how promotions went out.

use model::PromotionId;
use model::promotion::Walk;
use rusqlite::{Connection, OptionalExtension, params};

use super::Error;
use super::rows::json;

pub(super) struct NewRow {
    promotion: PromotionId,
    record: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(walk: &Walk) -> Result<Self, Error> {
        let promotion = walk.promotion;
        let record = serde_json::to_string(walk).map_err(|source| Error::EncodeWalk { promotion, source })?;
        Ok(Self { promotion, record })
    }
}

/// Writes it, or writes it anew.
pub(super) fn write(connection: &Connection, row: &NewRow) -> Result<(), Error> {
    let NewRow { promotion, record } = row;
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO walks (promotion, record) VALUES (?1, ?2)
             ON CONFLICT (promotion) DO UPDATE SET record = excluded.record",
        )?;
        statement.execute(params![promotion.to_string(), record])
    };
    write().map(drop).map_err(|source| Error::WriteWalk { promotion: *promotion, source })
}

pub(super) fn remove(connection: &Connection, promotion: PromotionId) -> Result<(), Error> {
    let write = || -> rusqlite::Result<usize> {
        connection.prepare_cached("DELETE FROM walks WHERE promotion = ?1")?.execute([promotion.to_string()])
    };
    write().map(drop).map_err(|source| Error::WriteWalk { promotion, source })
}

pub(super) fn one(connection: &Connection, promotion: PromotionId) -> Result<Option<Walk>, Error> {
    let read = || -> rusqlite::Result<Option<Walk>> {
        let mut statement = connection.prepare_cached("SELECT record FROM walks WHERE promotion = ?1")?;
        statement.query_row([promotion.to_string()], |row| json(row, 0)).optional()
    };
    read().map_err(|source| Error::ReadWalks { source })
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Walk>, Error> {
    let read = || -> rusqlite::Result<Vec<Walk>> {
        let mut statement = connection.prepare_cached("SELECT record FROM walks ORDER BY promotion")?;
        statement.query_map([], |row| json(row, 0))?.collect()
    };
    read().map_err(|source| Error::ReadWalks { source })
}
