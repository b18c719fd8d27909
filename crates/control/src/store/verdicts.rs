//! The records of verdicts.

use model::event::VerdictGiven;
use model::verdict::Verdict;
use model::{Digest, SandboxId, VerdictId};
use rusqlite::{Connection, Row, params};

use super::ledger::Page;
use super::moves::write_event;
use super::rows::{json, parsed};
use super::{Error, now};

pub(super) struct NewRow {
    verdict: Verdict,
    record: String,
    event: VerdictGiven,
    event_text: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(verdict: Verdict) -> Result<Self, Error> {
        let id = verdict.id;
        let record = serde_json::to_string(&verdict).map_err(|source| Error::EncodeVerdict { id, source })?;
        let event = VerdictGiven {
            verdict: id,
            sandbox: verdict.sandbox,
            sandbox_name: verdict.sandbox_name.clone(),
            outcome: verdict.outcome,
            digest: verdict.digest,
            actor: verdict.actor,
        };
        let event_text =
            serde_json::to_string(&event).map_err(|source| Error::EncodeVerdict { id, source })?;
        Ok(Self { verdict, record, event, event_text })
    }
}

pub(super) fn insert(page: &mut Page<'_>, row: &NewRow) -> Result<(), Error> {
    let Verdict { id, sandbox, digest, created, .. } = &row.verdict;
    let write = |page: &mut Page<'_>| -> rusqlite::Result<()> {
        let mut statement = page.connection.prepare_cached(
            "INSERT INTO verdicts (id, sandbox, digest, created, record) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        statement.execute(params![
            id.to_string(),
            sandbox.to_string(),
            digest.to_string(),
            created.as_microsecond(),
            row.record
        ])?;
        write_event(page, now(), &row.event_text, row.event.clone().into())
    };
    write(page).map_err(|source| Error::InsertVerdict { id: *id, source })
}

/// Which verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdicts {
    All,
    /// Of one sandbox's states.
    Of(SandboxId),
    /// Of one state.
    On(Digest),
}

/// Oldest first.
pub(super) fn read(connection: &Connection, which: Verdicts) -> Result<Vec<Verdict>, Error> {
    let (filter, key) = match which {
        Verdicts::All => ("", None),
        Verdicts::Of(sandbox) => ("WHERE sandbox = ?1", Some(sandbox.to_string())),
        Verdicts::On(digest) => ("WHERE digest = ?1", Some(digest.to_string())),
    };
    let read = || -> rusqlite::Result<Vec<Verdict>> {
        let mut statement = connection
            .prepare_cached(&format!("SELECT record FROM verdicts {filter} ORDER BY created, id"))?;
        let decode = |row: &Row<'_>| json(row, 0);
        statement.query_map(rusqlite::params_from_iter(key), decode)?.collect()
    };
    read().map_err(|source| Error::ListVerdicts { source })
}

/// Forgets the oldest beyond so many, and says which.
pub(super) fn prune(connection: &Connection, kept: usize) -> Result<Vec<VerdictId>, Error> {
    let write = || -> rusqlite::Result<Vec<VerdictId>> {
        let mut statement = connection.prepare_cached(
            "DELETE FROM verdicts WHERE id NOT IN (SELECT id FROM verdicts ORDER BY created DESC, id LIMIT ?1)
             RETURNING id",
        )?;
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        statement.query_map([kept], |row| parsed(row, 0))?.collect()
    };
    write().map_err(|source| Error::Prune { source })
}
