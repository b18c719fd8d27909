//! When something last passed on a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Pulse(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    began: Instant,
    /// Milliseconds after that.
    last: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Arc::new(Inner { began: Instant::now(), last: AtomicU64::new(0) }))
    }

    fn beat(&self) {
        self.0.last.store(self.0.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns when nothing has passed for so long.
    pub(super) async fn stopped(&self, after: Duration) {
        loop {
            let last = self.0.began + Duration::from_millis(self.0.last.load(Ordering::Relaxed));
            match after.checked_sub(last.elapsed()) {
                Some(rest) if !rest.is_zero() => tokio::time::sleep(rest).await,
                Some(_) | None => return,
            }
        }
    }
}

/// A connection whose pulse is felt.
#[derive(Debug)]
pub(super) struct Felt<S> {
    stream: S,
    pulse: Pulse,
}

impl<S> Felt<S> {
    pub(super) fn new(stream: S, pulse: &Pulse) -> Self {
        Self { stream, pulse: pulse.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Felt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.pulse.beat();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Felt<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.pulse.beat();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.pulse.beat();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
