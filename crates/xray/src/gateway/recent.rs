//! What was refused within the last second: the same again is the same attempt, and a flood is told of by its beginning and
//! its size.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::request::Protocol;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Recent {
    second: Mutex<Second>,
    /// Something was left out.
    flooded: Notify,
}

#[derive(Debug, Default)]
struct Second {
    since: Option<Instant>,
    known: HashSet<Attempted>,
    /// Attempts that are told by their number only.
    left_out: u64,
}

/// What an attempt is among those of the last second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    First,
    Again,
    /// One of more than are told.
    Flood,
}

pub(super) type Attempted = (Protocol, Option<String>, Option<IpAddr>, Option<u16>);

impl Recent {
    /// Is it to be told by itself?
    pub(super) fn is_new(&self, attempt: Attempted) -> bool {
        self.hear(attempt) == Heard::First
    }

    pub(super) fn hear(&self, attempt: Attempted) -> Heard {
        let mut second = self.second();
        if second.since.is_none_or(|since| since.elapsed() > SECOND) {
            second.since = Some(Instant::now());
            second.known.clear();
        }
        if second.known.contains(&attempt) {
            return Heard::Again;
        }
        if second.known.len() >= MOST {
            second.left_out += 1;
            self.flooded.notify_one();
            return Heard::Flood;
        }
        second.known.insert(attempt);
        Heard::First
    }

    /// Waits until something was left out, and a second for more of it.
    pub(super) async fn flood(&self) {
        self.flooded.notified().await;
        tokio::time::sleep(SECOND).await;
    }

    /// How many were left out since this was last asked, if any were.
    pub(super) fn take_left_out(&self) -> Option<u64> {
        Some(std::mem::take(&mut self.second().left_out)).filter(|left_out| *left_out > 0)
    }

    fn second(&self) -> MutexGuard<'_, Second> {
        self.second.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// Different attempts that are told in a second.
const MOST: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_of_by_its_beginning_and_its_size() {
        let recent = Recent::default();
        let attempt = |port| (Protocol::Udp, None, None, Some(port));
        let told = (0..MOST as u16 + 7).filter(|port| recent.is_new(attempt(*port))).count();
        // The second may have been over in between, on a slow machine; nothing is lost then either.
        let left_out = recent.take_left_out().unwrap_or_default();
        assert_eq!(told as u64 + left_out, MOST as u64 + 7);
        assert!(told >= MOST && recent.take_left_out().is_none());
        assert!(!recent.is_new(attempt(0)) || recent.second().known.len() == 1);
    }
}
