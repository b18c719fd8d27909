//! Bodies on their way: passed on piece by piece, counted, and their beginning kept for the record.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::exchange::Exchange;

/// What may be kept of all bodies at once, of all sandboxes.
#[derive(Debug)]
pub(in super::super) struct Budget {
    left: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: AtomicUsize::new(AT_ONCE) }
    }
}

impl Budget {
    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What is known of one body.
#[derive(Debug)]
pub(super) struct Half {
    budget: Arc<Budget>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    size: u64,
    kept: Kept,
    /// Taken from the budget.
    taken: usize,
}

/// What is kept of a body.
#[derive(Debug)]
pub(super) enum Kept {
    Beginning(Vec<u8>),
    /// There was no room for it.
    Nothing,
}

impl Default for Kept {
    fn default() -> Self {
        Self::Beginning(Vec::new())
    }
}

impl Half {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), seen: Mutex::default() }
    }

    pub(super) fn see(&self, bytes: &[u8]) {
        let mut seen = self.seen();
        seen.size += bytes.len() as u64;
        let Kept::Beginning(beginning) = &mut seen.kept else { return };
        let piece = &bytes[..bytes.len().min(KEPT + MARGIN - beginning.len())];
        if self.budget.take(piece.len()) {
            beginning.extend_from_slice(piece);
            seen.taken += piece.len();
        } else {
            // Half of it would look like all of it.
            seen.kept = Kept::Nothing;
            self.budget.give_back(std::mem::take(&mut seen.taken));
        }
    }

    /// How much there was, without the beginning of it.
    pub(super) fn count(&self, bytes: u64) {
        self.seen().size += bytes;
    }

    /// Its size, and what is kept of it, which is handed out once. Its room is given back with this.
    pub(super) fn known(&self) -> (u64, Kept) {
        let mut seen = self.seen();
        (seen.size, std::mem::take(&mut seen.kept))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let taken = self.seen().taken;
        self.budget.give_back(taken);
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
/// Of all bodies, in bytes: five hundred of the longest, or very many short ones.
const AT_ONCE: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_kept_as_long_as_there_is_room_for_all() {
        let budget = Arc::new(Budget::default());
        let long = vec![b'x'; 1 << 20];
        let halves: Vec<Half> = (0..AT_ONCE / (KEPT + MARGIN) + 1).map(|_| Half::new(&budget)).collect();
        for half in &halves {
            half.see(&long[..100]);
            half.see(&long);
        }
        let kept = |half: &Half| match half.known() {
            (size, Kept::Beginning(beginning)) => (size, Some(beginning.len())),
            (size, Kept::Nothing) => (size, None),
        };
        let (size, most) = (100 + (1 << 20), KEPT + MARGIN);
        assert_eq!(kept(&halves[0]), (size, Some(most)));
        assert_eq!(kept(halves.last().unwrap()), (size, None));
        drop(halves);
        assert_eq!(budget.left.load(Ordering::Relaxed), AT_ONCE);
    }
}
