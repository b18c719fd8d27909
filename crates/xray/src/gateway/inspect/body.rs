//! Bodies on their way: passed on piece by piece, counted, and their beginning kept for the record.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::exchange::Exchange;

/// What is known of one body.
#[derive(Debug, Default)]
pub(super) struct Half(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    size: u64,
    beginning: Vec<u8>,
}

impl Half {
    pub(super) fn see(&self, bytes: &[u8]) {
        let mut seen = self.seen();
        seen.size += bytes.len() as u64;
        let room = KEPT + MARGIN - seen.beginning.len();
        seen.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// How much there was, without the beginning of it.
    pub(super) fn count(&self, bytes: u64) {
        self.seen().size += bytes;
    }

    /// Its size, and its beginning.
    pub(super) fn known(&self) -> (u64, Vec<u8>) {
        let seen = self.seen();
        (seen.size, seen.beginning.clone())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is passed on.
#[derive(Debug)]
pub(super) struct Watched {
    body: Incoming,
    half: Arc<Half>,
    /// Nothing more comes. Not every body knows this of itself.
    is_over: bool,
    /// The exchange that ends with it.
    ends: Option<Arc<Exchange>>,
}

impl Watched {
    pub(super) fn new(body: Incoming, half: Arc<Half>, ends: Option<Arc<Exchange>>) -> Self {
        Self { body, half, is_over: false, ends }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    self.half.see(bytes);
                }
            }
            Some(Err(error)) => {
                if let Some(exchange) = self.ends.take() {
                    exchange.end(Some(super::chain(error)));
                }
            }
            None => self.is_over = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(exchange) = self.ends.take() {
            let is_whole = self.is_over || self.body.is_end_stream();
            exchange.end((!is_whole).then(|| "it was not read to its end".to_owned()));
        }
    }
}

/// Of each body, in bytes.
pub(super) const KEPT: usize = 64 << 10;
/// Read beyond that before secrets are taken out, so that none is cut in two and not known any more.
const MARGIN: usize = 4 << 10;
