//! The file and its tables.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::Error;

/// Makes the folder (0700) and the file (0600): records hold the environments of commands, and those hold secrets.
pub(super) fn prepare(home: &Path) -> Result<PathBuf, Error> {
    let private = Permissions::from_mode(0o700);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .and_then(|()| fs::set_permissions(home, private))
        .map_err(|source| Error::Home { path: home.to_owned(), source })?;
    let path = home.join("zeno.db");
    // SQLite gives its side files the mode of the main one.
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .map_err(|source| Error::Create { path: path.clone(), source })?;
    Ok(path)
}

/// Opens the file and brings its tables up to date.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        // Checkpoints wait for the disk, so they are made apart (`Store::checkpoint`). This is only for when that cannot keep up.
        connection.pragma_update(None, "wal_autocheckpoint", 16_384)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    let mut connection = connect().map_err(|source| Error::Open { path: path.to_owned(), source })?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let known = MIGRATIONS.len();
    let found: usize = connection
        .query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
        .map_err(|source| Error::Migrate { version: known, source })? as usize;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (step, tables) in MIGRATIONS.iter().enumerate().skip(found) {
        let version = step + 1;
        let apply = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            transaction.execute_batch(tables)?;
            transaction.pragma_update(None, "user_version", version as u32)?;
            transaction.commit()
        };
        apply(connection).map_err(|source| Error::Migrate { version, source })?;
    }
    Ok(())
}

/// Each entry takes the store from the version before it. Entries are only added.
pub(super) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    name TEXT,
    state TEXT NOT NULL,
    reason TEXT,
    used INTEGER NOT NULL,      -- a command has run since it was last made or started
    throwaway INTEGER NOT NULL, -- made for one command; goes with its daemon
    created INTEGER NOT NULL,   -- microseconds since 1970, like all times here
    changed INTEGER NOT NULL,
    expires INTEGER,
    workspace BLOB,
    caveats TEXT NOT NULL,
    request TEXT NOT NULL       -- without the environment
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX sandbox_names ON sandboxes (name) WHERE name IS NOT NULL AND state <> 'destroyed';
CREATE INDEX sandbox_existing ON sandboxes (created) WHERE state <> 'destroyed';

-- Apart from the records, because it may hold secrets and nothing that shows a record needs it.
CREATE TABLE environments (
    sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    variables TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Outlive the records they tell of.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    transition TEXT NOT NULL
) STRICT;
",
    "
ALTER TABLE sandboxes ADD COLUMN snapshot TEXT;                         -- the one it stands on
ALTER TABLE sandboxes ADD COLUMN restarting INTEGER NOT NULL DEFAULT 0; -- its processes are to be made anew

-- Outlive the sandboxes they were made of, and hold all that is needed to make others.
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    name TEXT,
    sandbox TEXT NOT NULL,
    sandbox_name TEXT,
    parent TEXT,
    reason TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    size INTEGER,
    workspace BLOB,
    labels TEXT NOT NULL,
    actor TEXT NOT NULL,
    request TEXT NOT NULL,      -- without the environment
    variables TEXT NOT NULL,    -- the environment, which goes with the snapshot
    saved TEXT NOT NULL         -- the backend's
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX snapshot_names ON snapshots (name) WHERE name IS NOT NULL;
",
    "
-- What was brought into reality. What it displaced lies in a folder of the same name.
CREATE TABLE promotions (
    id TEXT PRIMARY KEY,
    made INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
-- What checks said of a state. Outlive its sandbox and its snapshot.
CREATE TABLE verdicts (
    id TEXT PRIMARY KEY,
    sandbox TEXT NOT NULL,
    digest TEXT NOT NULL,
    created INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX verdicts_on ON verdicts (digest);

CREATE TABLE races (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
-- How promotions went out, stage by stage.
CREATE TABLE walks (
    promotion TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
-- What sandboxes tried to reach. Outlive them; the oldest are forgotten.
CREATE TABLE requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox TEXT NOT NULL,
    denied INTEGER NOT NULL,
    name TEXT,
    record TEXT NOT NULL        -- its id is only in the column
) STRICT;

CREATE INDEX requests_of ON requests (sandbox);

-- Which names sandboxes were given addresses for: a program may use one long after it asked.
CREATE TABLE given_names (
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (sandbox, number)
) STRICT, WITHOUT ROWID;
",
    "
-- The same with what lists are made by before what is long, so that they read only as much as they need.
CREATE TABLE requests_by_size (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox TEXT NOT NULL,
    size INTEGER NOT NULL,      -- of record and texts, in bytes
    denied INTEGER NOT NULL,
    is_open INTEGER NOT NULL,   -- it goes on
    name TEXT,
    address TEXT,
    host TEXT,                  -- what an HTTP request says
    record TEXT NOT NULL,       -- without its id and texts
    texts TEXT                  -- what its bodies began with
) STRICT;

INSERT INTO requests_by_size (id, sandbox, size, denied, is_open, name, address, host, record, texts)
SELECT id, sandbox, length(record), denied, json_extract(record, '$.end') IS NULL AND NOT denied, name,
       json_extract(record, '$.address'), json_extract(record, '$.http.host'),
       json_remove(record, '$.http.request.text', '$.http.response.text'),
       CASE WHEN json_type(record, '$.http') = 'object'
            THEN json_object('request', json_extract(record, '$.http.request.text'),
                             'response', json_extract(record, '$.http.response.text')) END
FROM requests;

DROP TABLE requests;
ALTER TABLE requests_by_size RENAME TO requests;
CREATE INDEX requests_of ON requests (sandbox, size);
CREATE INDEX requests_open ON requests (id) WHERE is_open;
",
];
