//! The API without a control plane: doors, bodies and conversations on routes made for the tests, behind the
//! same layers and over the same connections as the real ones.

mod conversation;
mod doors;
mod files;
mod logs;
mod table;

use std::time::Duration;

use axum::Router;
use model::exec::{FrameHead, FrameKind};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::{Door, Stop, behind};
use crate::client::Client;
use crate::daemon::serve::{Listener, until_stopped};

/// Serves `router` on a real socket until the returned stop is requested.
async fn served(router: Router, stop: &Stop) -> (TempDir, Client) {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(crate::paths::socket(home.path())).unwrap();
    let unix = (Listener::Unix(listener), behind(Door::Unix, router));
    let stop = stop.clone();
    tokio::spawn(async move { until_stopped(unix, mpsc::channel(1).1, &stop).await });
    let client = Client::connect(home.path()).await.unwrap();
    (home, client)
}

/// Speaks as init does, rightly or not.
struct Init(UnixStream);

impl Init {
    async fn say(&mut self, kind: FrameKind, payload: impl AsRef<[u8]>) {
        let payload = payload.as_ref();
        let length = u32::try_from(payload.len()).unwrap();
        self.raw(&FrameHead { kind, length }.encode()).await;
        self.raw(payload).await;
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }
}

/// Fails a test whose condition does not come about.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}
