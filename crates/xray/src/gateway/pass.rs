//! Bytes from one socket to another.
//!
//! They are copied, with a large buffer where they come in quantity. To splice them through a pipe was tried: from one
//! loopback to another it moves a quarter less, and it costs descriptors.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::room::Room;

/// Passes on what comes from one until it has no more to say.
pub(super) async fn pass(room: &Room, from: &TcpStream, to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut buffer = Buffer::small();
    loop {
        let received = receive(from, &mut buffer.bytes);
        let received = match &buffer.place {
            None => Ok(received.await),
            Some(_) => tokio::time::timeout(LULL, received).await,
        };
        let Ok(received) = received else {
            buffer = Buffer::small();
            continue;
        };
        let length = received?;
        if length == 0 {
            return Ok(());
        }
        send(to, &buffer.bytes[..length]).await?;
        count.fetch_add(length as u64, Ordering::Relaxed);
        if length == buffer.bytes.len()
            && buffer.place.is_none()
            && let Some(place) = room.for_much()
        {
            buffer = Buffer::large(place);
        }
    }
}

/// What is on its way.
struct Buffer {
    bytes: Vec<u8>,
    /// A large one is one of a few.
    place: Option<OwnedSemaphorePermit>,
}

impl Buffer {
    fn small() -> Self {
        Self { bytes: vec![0; BUFFER], place: None }
    }

    fn large(place: OwnedSemaphorePermit) -> Self {
        Self { bytes: vec![0; LARGE], place: Some(place) }
    }
}

pub(super) async fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    from.async_io(Interest::READABLE, || from.try_read(buffer)).await
}

pub(super) async fn send(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let length = to.async_io(Interest::WRITABLE, || to.try_write(bytes)).await?;
        bytes = &bytes[length..];
    }
    Ok(())
}

/// Nothing more will come this way.
pub(super) fn end(to: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(to.as_fd(), Shutdown::Write) {
        // The other side was faster.
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

pub(super) const BUFFER: usize = 16 << 10;
/// From 256 KiB to this, a download from this machine's own loopback gains another twelfth.
const LARGE: usize = 1 << 20;
/// A large buffer is given back when nothing comes for so long.
const LULL: Duration = Duration::from_secs(1);
