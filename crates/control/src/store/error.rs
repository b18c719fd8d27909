use std::path::PathBuf;
use std::sync::Arc;

use model::{Name, PromotionId, RaceId, SandboxId, SnapshotId, State, VerdictId};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to make the folder `{path}`")]
    Home {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to make the store `{path}`")]
    Create {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to open the store `{path}`")]
    Open {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to bring the store to version {version}")]
    Migrate {
        version: usize,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store was written by a newer zeno (version {found}; this one knows {known})")]
    Newer { found: usize, known: usize },
    #[error("failed to start the store's thread")]
    Thread {
        #[source]
        source: std::io::Error,
    },
    #[error("the name `{name}` is taken")]
    NameTaken { name: Name },
    #[error("there is no sandbox {id}")]
    NoSandbox { id: SandboxId },
    #[error("sandbox {id} is {from} and cannot become {to}")]
    Refused { id: SandboxId, from: State, to: State },
    #[error("failed to record sandbox {id}")]
    Insert {
        id: SandboxId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to record that sandbox {id} is {to}")]
    Transition {
        id: SandboxId,
        to: State,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to update the record of sandbox {id}")]
    Update {
        id: SandboxId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode the record of sandbox {id}")]
    Encode {
        id: SandboxId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to read the record of sandbox {id}")]
    Read {
        id: SandboxId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the records")]
    List {
        #[source]
        source: rusqlite::Error,
    },
    #[error("the name `{name}` is taken by another snapshot")]
    SnapshotNameTaken { name: Name },
    #[error("there is no snapshot {id}")]
    NoSnapshot { id: SnapshotId },
    #[error("failed to record snapshot {id}")]
    InsertSnapshot {
        id: SnapshotId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode the record of snapshot {id}")]
    EncodeSnapshot {
        id: SnapshotId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to update the record of snapshot {id}")]
    UpdateSnapshot {
        id: SnapshotId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the snapshots")]
    ListSnapshots {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode verdict {id}")]
    EncodeVerdict {
        id: VerdictId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to record verdict {id}")]
    InsertVerdict {
        id: VerdictId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the verdicts")]
    ListVerdicts {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode a request of a sandbox")]
    EncodeRequest {
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to record a request of a sandbox")]
    WriteRequest {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the requests of sandboxes")]
    ListRequests {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode race {id}")]
    EncodeRace {
        id: RaceId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to record race {id}")]
    InsertRace {
        id: RaceId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the races")]
    ListRaces {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read the events")]
    Events {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to forget old records")]
    Prune {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to encode the record of promotion {id}")]
    EncodePromotion {
        id: PromotionId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to write the record of promotion {id}")]
    WritePromotion {
        id: PromotionId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to list promotions")]
    ListPromotions {
        #[source]
        source: rusqlite::Error,
    },
    #[error("the record of a promotion does not hold what zeno wrote")]
    DecodePromotion {
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to encode how promotion {promotion} went out")]
    EncodeWalk {
        promotion: PromotionId,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to record how promotion {promotion} went out")]
    WriteWalk {
        promotion: PromotionId,
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to read how promotions went out")]
    ReadWalks {
        #[source]
        source: rusqlite::Error,
    },
    #[error("failed to bring the store's log into its file")]
    Checkpoint {
        #[source]
        source: rusqlite::Error,
    },
    /// Shared, because all that was written together fails together.
    #[error("failed to commit to the store")]
    Commit {
        #[source]
        source: Arc<rusqlite::Error>,
    },
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Is it that the disk has no room?
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let mut cause: Option<&dyn std::error::Error> = Some(self);
        while let Some(error) = cause {
            let sqlite =
                error.downcast_ref::<rusqlite::Error>().or_else(|| Some(&**error.downcast_ref::<Arc<_>>()?));
            if sqlite.and_then(rusqlite::Error::sqlite_error_code) == Some(rusqlite::ErrorCode::DiskFull) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
