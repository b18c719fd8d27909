//! zeno's nouns: what a sandbox is, what may be asked of it, and how the answers look on the wire.
//!
//! One definition per fact: the HTTP API, its OpenAPI document, the command line's `--json` and the
//! reference tables are all made from these types.
//!
//! Never does I/O (reading the environment once, in [`env`], is the one exception), never prints,
//! knows nothing of HTTP, SQLite or Linux.

pub mod caveat;
pub mod config;
pub mod diff;
pub mod digest;
pub mod doctor;
pub mod env;
pub mod event;
pub mod exec;
pub mod files;
pub mod given;
pub mod id;
pub mod limits;
pub mod mask;
pub mod net;
pub mod port;
pub mod problem;
pub mod promotion;
pub mod race;
pub mod refresh;
pub mod request;
pub mod sandbox;
pub mod snapshot;
pub mod state;
pub mod units;
pub mod verdict;

pub use caveat::Caveat;
pub use digest::Digest;
pub use id::{ExecId, LayerId, Name, PromotionId, RaceId, SandboxId, SnapshotId, VerdictId};
pub use problem::{Code, Problem};
pub use sandbox::Sandbox;
pub use snapshot::Snapshot;
pub use state::State;
pub use verdict::Verdict;
