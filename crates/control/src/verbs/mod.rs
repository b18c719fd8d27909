//! What can be asked of zeno, one file per verb or family of verbs. A verb finds the sandbox, takes its turn, looks
//! whether the state allows it, has the backend do it, and records it.

mod create;
mod destroy;
mod diff;
mod events;
mod exec;
mod extend;
mod gc;
mod judge;
mod net;
mod pause;
mod port;
mod promote;
mod refresh;
mod restore;
mod rollback;
mod show;
mod snapshot;
mod snapshots;
mod start;
mod stop;
mod verdicts;
mod walks;

pub use destroy::Keep;
pub(crate) use destroy::Why;
pub use judge::Throwaway;
pub use promote::{Gate, Look};
pub use refresh::Preview;
