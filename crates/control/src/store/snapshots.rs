//! The records of snapshots.

use backends::native::Saved;
use jiff::Timestamp;
use model::event::{SnapshotChange, SnapshotChangeKind};
use model::exec::Text;
use model::sandbox::{Actor, CreateRequest};
use model::units::Size;
use model::{Name, SandboxId, Snapshot, SnapshotId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::ledger::Page;
use super::moves::write_event;
use super::rows::{self, json, maybe, parsed, time};
use super::{Error, now};

/// A snapshot, and what is needed to make a sandbox of it.
#[derive(Clone, Debug)]
pub struct SnapshotRecord {
    pub snapshot: Snapshot,
    /// What its sandbox was made with, and others are to be made with.
    pub request: CreateRequest,
    pub saved: Saved,
}

pub(super) struct NewRow {
    snapshot: Snapshot,
    labels: String,
    reason: String,
    actor: String,
    request: String,
    variables: String,
    saved: String,
}

impl NewRow {
    /// Encoded by the caller, because the ledger's time is everybody's.
    pub(super) fn of(new: SnapshotRecord) -> Result<Self, Error> {
        let SnapshotRecord { snapshot, mut request, saved } = new;
        let failed = |source| Error::EncodeSnapshot { id: snapshot.id, source };
        let variables = serde_json::to_string(&std::mem::take(&mut request.context.env)).map_err(failed)?;
        Ok(Self {
            labels: serde_json::to_string(&snapshot.labels).map_err(failed)?,
            reason: serde_json::to_string(&snapshot.reason).map_err(failed)?,
            actor: serde_json::to_string(&snapshot.actor).map_err(failed)?,
            request: serde_json::to_string(&request).map_err(failed)?,
            variables,
            saved: serde_json::to_string(&saved).map_err(failed)?,
            snapshot,
        })
    }
}

pub(super) fn insert(page: &mut Page<'_>, row: &NewRow) -> Result<(), Error> {
    let snapshot = &row.snapshot;
    let id = snapshot.id;
    write_new(page.connection, row).map_err(|source| match (&snapshot.name, &source) {
        (Some(name), rusqlite::Error::SqliteFailure(failure, _))
            if failure.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE =>
        {
            Error::SnapshotNameTaken { name: name.clone() }
        }
        _ => Error::InsertSnapshot { id, source },
    })?;
    if snapshot.reason.is_as_it_was() {
        stand_on(page.connection, snapshot.sandbox, id)?;
    }
    append(page, snapshot, SnapshotChangeKind::Made, snapshot.actor)
}

fn write_new(connection: &Connection, row: &NewRow) -> rusqlite::Result<()> {
    let snapshot = &row.snapshot;
    let mut statement = connection.prepare_cached(
        "INSERT INTO snapshots (id, name, sandbox, sandbox_name, parent, reason, created, expires, size, workspace,
                                labels, actor, request, variables, saved)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    statement.execute(params![
        snapshot.id.to_string(),
        snapshot.name.as_ref().map(Name::as_str),
        snapshot.sandbox.to_string(),
        snapshot.sandbox_name.as_ref().map(Name::as_str),
        snapshot.parent.map(|parent| parent.to_string()),
        row.reason,
        snapshot.created.as_microsecond(),
        snapshot.expires.map(Timestamp::as_microsecond),
        snapshot.size.map(|size| size.0.cast_signed()),
        snapshot.workspace.as_ref().map(|workspace| &workspace.0),
        row.labels,
        row.actor,
        row.request,
        row.variables,
        row.saved,
    ])?;
    Ok(())
}

pub(super) fn all(connection: &Connection) -> Result<Vec<SnapshotRecord>, Error> {
    let read = || -> rusqlite::Result<Vec<SnapshotRecord>> {
        let mut statement = connection.prepare_cached(&format!("{SELECT} ORDER BY created, id"))?;
        statement.query_map([], from_row)?.collect()
    };
    read().map_err(|source| Error::ListSnapshots { source })
}

fn one(connection: &Connection, id: SnapshotId) -> Result<SnapshotRecord, Error> {
    let read = || -> rusqlite::Result<Option<SnapshotRecord>> {
        let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?;
        statement.query_row([id.to_string()], from_row).optional()
    };
    read().map_err(|source| Error::ListSnapshots { source })?.ok_or(Error::NoSnapshot { id })
}

pub(super) fn remove(page: &mut Page<'_>, id: SnapshotId, actor: Actor) -> Result<Snapshot, Error> {
    let snapshot = one(page.connection, id)?.snapshot;
    let write = |connection: &Connection| -> rusqlite::Result<()> {
        let parent = snapshot.parent.map(|parent| parent.to_string());
        for heirs in [
            "UPDATE snapshots SET parent = ?2 WHERE parent = ?1",
            "UPDATE sandboxes SET snapshot = ?2 WHERE snapshot = ?1",
        ] {
            connection.prepare_cached(heirs)?.execute(params![id.to_string(), parent])?;
        }
        connection.prepare_cached("DELETE FROM snapshots WHERE id = ?1")?.execute([id.to_string()])?;
        Ok(())
    };
    write(page.connection).map_err(|source| Error::UpdateSnapshot { id, source })?;
    append(page, &snapshot, SnapshotChangeKind::Removed, actor)?;
    Ok(snapshot)
}

pub(super) fn rolled_back(page: &mut Page<'_>, sandbox: SandboxId, to: SnapshotId) -> Result<(), Error> {
    let target = one(page.connection, to)?.snapshot;
    let record = rows::record(page.connection, sandbox)?.ok_or(Error::NoSandbox { id: sandbox })?;
    stand_on(page.connection, sandbox, to)?;
    let told = Snapshot { sandbox, sandbox_name: record.sandbox.name, ..target };
    append(page, &told, SnapshotChangeKind::RolledBack, record.sandbox.actor)
}

pub(super) fn set_size(connection: &Connection, id: SnapshotId, size: Size) -> Result<(), Error> {
    let write = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached("UPDATE snapshots SET size = ?2 WHERE id = ?1")?;
        statement.execute(params![id.to_string(), size.0.cast_signed()])?;
        Ok(())
    };
    write().map_err(|source| Error::UpdateSnapshot { id, source })
}

pub(super) fn set_saved(connection: &Connection, texts: &[(SnapshotId, String)]) -> Result<(), Error> {
    for (id, text) in texts {
        let write = || -> rusqlite::Result<()> {
            let mut statement = connection.prepare_cached("UPDATE snapshots SET saved = ?2 WHERE id = ?1")?;
            statement.execute(params![id.to_string(), text])?;
            Ok(())
        };
        write().map_err(|source| Error::UpdateSnapshot { id: *id, source })?;
    }
    Ok(())
}

/// A sandbox that is on its way out may have no record any more.
fn stand_on(connection: &Connection, sandbox: SandboxId, on: SnapshotId) -> Result<(), Error> {
    let write = || -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare_cached("UPDATE sandboxes SET snapshot = ?2, restarting = 0 WHERE id = ?1")?;
        statement.execute(params![sandbox.to_string(), on.to_string()])?;
        Ok(())
    };
    write().map_err(|source| Error::Update { id: sandbox, source })
}

fn append(
    page: &mut Page<'_>,
    snapshot: &Snapshot,
    change: SnapshotChangeKind,
    actor: Actor,
) -> Result<(), Error> {
    let data = SnapshotChange {
        snapshot: snapshot.id,
        name: snapshot.name.clone(),
        sandbox: snapshot.sandbox,
        sandbox_name: snapshot.sandbox_name.clone(),
        change,
        reason: snapshot.reason,
        actor,
    };
    let id = snapshot.id;
    let text = serde_json::to_string(&data).map_err(|source| Error::EncodeSnapshot { id, source })?;
    write_event(page, now(), &text, data.into()).map_err(|source| Error::UpdateSnapshot { id, source })
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<SnapshotRecord> {
    let mut request: CreateRequest = json(row, 12)?;
    request.context.env = json(row, 13)?;
    let saved: Saved = json(row, 14)?;
    let snapshot = Snapshot {
        id: parsed(row, 0)?,
        name: maybe(row, 1)?,
        sandbox: parsed(row, 2)?,
        sandbox_name: maybe(row, 3)?,
        parent: maybe(row, 4)?,
        reason: json(row, 5)?,
        created: time(row, 6)?,
        expires: row.get::<_, Option<i64>>(7)?.map(|_set| time(row, 7)).transpose()?,
        size: row.get::<_, Option<i64>>(8)?.map(|size| Size(size.cast_unsigned())),
        depth: saved.layers().len() as u64,
        workspace: row.get::<_, Option<Vec<u8>>>(9)?.map(Text),
        labels: json(row, 10)?,
        actor: json(row, 11)?,
    };
    Ok(SnapshotRecord { snapshot, request, saved })
}

const SELECT: &str =
    "SELECT id, name, sandbox, sandbox_name, parent, reason, created, expires, size, workspace, labels,
        actor, request, variables, saved FROM snapshots";
