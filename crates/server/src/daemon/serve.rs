//! Connections: accepted until the stop, then given a moment to finish.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::api::{Stop, Wire};
use crate::best_effort;

#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<Wire> {
        match self {
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Wire::Unix(stream)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Wire::Tcp(stream))
            }
        }
    }
}

/// Serves until the stop is requested, and then until what was asked before is answered, within bounds. More to listen on may
/// arrive meanwhile.
pub(crate) async fn until_stopped(
    first: (Listener, Router),
    mut arriving: mpsc::Receiver<(Listener, Router)>,
    stop: &Stop,
) {
    // Beyond this many, callers wait in the kernel's queue instead of using up our descriptors.
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    let mut accepting = JoinSet::new();
    let mut accept = |(listener, router)| {
        accepting.spawn(accept_all(listener, router, Arc::clone(&room), stop.clone()));
    };
    accept(first);
    loop {
        tokio::select! {
            Some(next) = arriving.recv() => accept(next),
            () = stop.requested() => break,
        }
    }
    accepting.shutdown().await;
    // All the room is free when the last connection has ended.
    match tokio::time::timeout(FAREWELL, room.acquire_many(MAX_CONNECTIONS)).await {
        Ok(all) => drop(all.expect("never closed")),
        Err(_late) => tracing::warn!("some requests were cut off"),
    }
}

async fn accept_all(listener: Listener, router: Router, room: Arc<Semaphore>, stop: Stop) {
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.expect("never closed");
        match listener.accept().await {
            Ok(wire) => {
                let connection = serve(wire, router.clone(), stop.clone());
                tokio::spawn(async move {
                    best_effort("serve a connection", connection.await);
                    drop(permit);
                });
            }
            Err(error) => {
                // Mostly EMFILE: trying again at once would spin.
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// One connection, request after request; after the stop only the one that is under way.
async fn serve(wire: Wire, router: Router, stop: Stop) -> Result<(), hyper::Error> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(wire), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = &mut connection => return ended,
        () = stop.requested() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// How long requests may take to finish once the daemon ends.
const FAREWELL: Duration = Duration::from_secs(3);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// From the connection, or the last answer, to a whole request head. An idle client reconnects.
const HEADER_PATIENCE: Duration = Duration::from_secs(60);
const MAX_CONNECTIONS: u32 = 4096;
const MAX_HEAD: usize = 64 << 10;
