//! The daemon's HTTP API, the daemon's main, and the client that talks to both.
//!
//! A handler parses, calls one verb of `control` and renders; no decision about a sandbox is made here.
//! What a sandbox's init says is taken as hostile: every frame is checked before it goes on.
//!
//! Never prints, never touches the store or the kernel's sandbox interfaces.

pub mod api;
pub mod client;
pub mod daemon;
mod e2b;
pub mod line;
pub mod logs;
mod mcp;
mod paths;

pub use api::openapi::openapi;
pub use control::frames::{self, FrameError, FrameReader, FrameWriter};

/// Sent with every response as `zeno-version`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The header that carries [`VERSION`].
pub const VERSION_HEADER: &str = "zeno-version";
/// The protocol a connection is upgraded to for a command's conversation.
pub const FRAMES_PROTOCOL: &str = "zeno-frames/1";
/// The protocol a connection is upgraded to for MCP, a message a line.
pub const MCP_PROTOCOL: &str = "mcp-lines/1";
/// Bytes of the longest message that is taken there.
pub const MCP_LONGEST: usize = 8 << 20;

/// Records the failure of something that may fail, such as clean-up.
fn best_effort<T, E: std::error::Error + 'static>(what: &str, result: Result<T, E>) {
    if let Err(error) = result {
        tracing::debug!(error = &error as &dyn std::error::Error, "{what}");
    }
}
