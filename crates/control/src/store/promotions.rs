//! The records of promotions.

use model::PromotionId;
use model::event::{PromotionChange, PromotionChangeKind};
use model::promotion::{Promotion, PromotionState};
use model::sandbox::Actor;
use rusqlite::{Connection, OptionalExtension, params};

use super::ledger::Page;
use super::moves::write_event;
use super::{Error, now};

/// Writes it, and tells what happened if it is not in the state it was in. `actor` is who wanted that.
pub(super) fn write(page: &mut Page<'_>, promotion: &Promotion, actor: Actor) -> Result<(), Error> {
    let id = promotion.id;
    let before = one(page.connection, id)?.map(|before| before.state);
    let record = serde_json::to_string(promotion).map_err(|source| Error::EncodePromotion { id, source })?;
    let write = |connection: &Connection| -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO promotions (id, made, record) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET record = excluded.record",
        )?;
        statement.execute(params![id.to_string(), promotion.when.as_microsecond(), record])
    };
    write(page.connection).map_err(|source| Error::WritePromotion { id, source })?;
    let change = match promotion.state {
        PromotionState::Applied => PromotionChangeKind::Promoted,
        PromotionState::Undone => PromotionChangeKind::Undone,
        PromotionState::Applying | PromotionState::Failed => return Ok(()),
    };
    if before == Some(promotion.state) {
        return Ok(());
    }
    let Promotion { sandbox, counts, forced, .. } = *promotion;
    let data = PromotionChange { promotion: id, sandbox, change, counts, forced, actor };
    let text = serde_json::to_string(&data).map_err(|source| Error::EncodePromotion { id, source })?;
    write_event(page, now(), &text, data.into()).map_err(|source| Error::WritePromotion { id, source })
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Promotion>, Error> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached("SELECT record FROM promotions ORDER BY made, id")?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let records = read().map_err(|source| Error::ListPromotions { source })?;
    records.iter().map(|record| decoded(record)).collect()
}

fn one(connection: &Connection, id: PromotionId) -> Result<Option<Promotion>, Error> {
    let read = || -> rusqlite::Result<Option<String>> {
        let mut statement = connection.prepare_cached("SELECT record FROM promotions WHERE id = ?1")?;
        statement.query_row([id.to_string()], |row| row.get(0)).optional()
    };
    let record = read().map_err(|source| Error::ListPromotions { source })?;
    record.map(|record| decoded(&record)).transpose()
}

fn decoded(record: &str) -> Result<Promotion, Error> {
    serde_json::from_str(record).map_err(|source| Error::DecodePromotion { source })
}

#[cfg(test)]
mod tests {
    use model::event::EventData;
    use serde_json::json;

    use super::super::Store;
    use super::*;

    #[tokio::test]
    async fn each_turn_is_told_once_and_by_whoever_wanted_it() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let promotion: Promotion = serde_json::from_value(json!({
            "id": PromotionId::from_bits(1), "sandbox": model::SandboxId::from_bits(1), "when": now(), "actor": "agt",
            "counts": { "deleted": 0, "created": 2, "modified": 0, "merged": 0, "kept": 0, "same": 0 }, "state": "applying",
        }))
        .unwrap();
        let turns = [
            (PromotionState::Applying, Actor::Agt),
            (PromotionState::Applied, Actor::Agt),
            (PromotionState::Applied, Actor::Atm),
            (PromotionState::Undone, Actor::Adm),
        ];
        for (state, actor) in turns {
            store.write_promotion(Promotion { state, ..promotion.clone() }, actor).await.unwrap();
        }
        let events = store.events(0, usize::MAX).await.unwrap();
        let told: Vec<_> = events.iter().map(|event| (event.kind.as_str(), event.subject.clone())).collect();
        let id = promotion.id.to_string();
        let expected = [("dev.zeno.promotion.promoted", id.clone()), ("dev.zeno.promotion.undone", id)];
        assert_eq!(told, expected);
        let EventData::Promotion(last) = &events[1].data else { panic!("{:?}", events[1]) };
        assert_eq!((last.actor, last.counts.created), (Actor::Adm, 2));
    }
}
