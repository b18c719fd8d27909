//! Bytes from one socket to another. What comes in quantity passes through a pipe within the kernel, and is copied nowhere.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::room::Room;

/// Passes on what comes from one until it has no more to say.
pub(super) async fn pass(room: &Room, from: &TcpStream, to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = receive(from, &mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        send(to, &buffer[..length]).await?;
        count.fetch_add(length as u64, Ordering::Relaxed);
        if length == buffer.len()
            && let Some(pipe) = Pipe::new(room)
        {
            drop(buffer);
            return pipe.pass(from, to, count).await;
        }
    }
}

/// A way from one socket to another that leaves the bytes where they are.
struct Pipe {
    entrance: OwnedFd,
    exit: OwnedFd,
    _room: OwnedSemaphorePermit,
}

impl Pipe {
    /// `None`: there are too many descriptors already, and bytes are copied instead.
    fn new(room: &Room) -> Option<Self> {
        let room = room.for_pipe()?;
        let (exit, entrance) = match pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) {
            Ok(ends) => ends,
            Err(errno) => {
                tracing::debug!(error = %io::Error::from(errno), "bytes are copied for lack of a pipe");
                return None;
            }
        };
        // Beyond what one user may have it stays as it is made.
        if let Err(errno) = fcntl_setpipe_size(&entrance, PIPE) {
            tracing::trace!(error = %io::Error::from(errno), "a pipe is small");
        }
        Some(Self { entrance, exit, _room: room })
    }

    async fn pass(&self, from: &TcpStream, to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
        loop {
            // The pipe is empty, so that whoever would block is the socket.
            let fill = || moved(splice(from.as_fd(), None, &self.entrance, None, PIPE, NOW));
            let mut left = from.async_io(Interest::READABLE, fill).await?;
            if left == 0 {
                return Ok(());
            }
            while left > 0 {
                let drain = || moved(splice(&self.exit, None, to.as_fd(), None, left, NOW));
                let length = to.async_io(Interest::WRITABLE, drain).await?;
                count.fetch_add(length as u64, Ordering::Relaxed);
                left -= length;
            }
        }
    }
}

fn moved(result: Result<usize, Errno>) -> io::Result<usize> {
    result.map_err(io::Error::from)
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
const PIPE: usize = 1 << 20;
const NOW: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);
