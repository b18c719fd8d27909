//! The records of promotions.

use model::promotion::Promotion;
use rusqlite::{Connection, params};

use super::Error;

pub(super) fn write(connection: &Connection, promotion: &Promotion) -> Result<(), Error> {
    let id = promotion.id;
    let record = serde_json::to_string(promotion).map_err(|source| Error::EncodePromotion { id, source })?;
    let write = || -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO promotions (id, made, record) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET record = excluded.record",
        )?;
        statement.execute(params![id.to_string(), promotion.when.as_microsecond(), record])
    };
    write().map(drop).map_err(|source| Error::WritePromotion { id, source })
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Promotion>, Error> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached("SELECT record FROM promotions ORDER BY made, id")?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let records = read().map_err(|source| Error::ListPromotions { source })?;
    let decode =
        |record: &String| serde_json::from_str(record).map_err(|source| Error::DecodePromotion { source });
    records.iter().map(decode).collect()
}
