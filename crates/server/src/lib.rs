//! Stand-in for the real `server` crate, so that `cli` compiles on its own branch. Replaced at merge.
#![expect(dead_code, reason = "replaced at merge")]

pub mod client;
mod frames;
pub mod line;
mod paths;

pub use frames::{FrameError, FrameReader, FrameWriter};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
pub const VERSION_HEADER: &str = "zeno-version";
pub const FRAMES_PROTOCOL: &str = "zeno-frames/1";

fn best_effort<T, E: std::error::Error + 'static>(what: &str, result: Result<T, E>) {
    if let Err(error) = result {
        tracing::debug!(error = &error as &dyn std::error::Error, "{what}");
    }
}

pub mod daemon {
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};

    use super::client::{Client, ClientError};

    pub async fn ensure(home: &Path, _exe: &Path) -> Result<Client, ClientError> {
        let client = Client::connect(home).await?;
        let _: serde_json::Value = client.get("/healthz").await?;
        Ok(client)
    }

    #[derive(Clone, Debug)]
    pub struct DaemonOptions {
        pub home: PathBuf,
        pub listen: Option<SocketAddr>,
        pub log: Option<String>,
    }

    #[derive(Debug, thiserror::Error)]
    pub enum DaemonError {
        #[error("this is a stand-in")]
        StandIn,
    }

    pub fn main(_options: &DaemonOptions) -> Result<(), DaemonError> {
        Err(DaemonError::StandIn)
    }
}
