//! How much may go on at once: descriptors are the whole daemon's, and no sandbox may take them all.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::inspect::Budget;

#[derive(Debug)]
pub(super) struct Room {
    /// Connections of all sandboxes.
    pub(super) connections: Arc<Semaphore>,
    /// Of one.
    pub(super) share: usize,
    /// Connections on which much is passed on.
    much: Arc<Semaphore>,
    /// Memory for the beginnings of bodies.
    pub(super) bodies: Arc<Budget>,
}

impl Room {
    /// Takes as many descriptors as the machine lets us have: most shells give far fewer to begin with.
    pub(super) fn make() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let descriptors = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                tracing::warn!(%error, "few connections at once: the limit of open files cannot be raised");
                limit.current
            }
        };
        Self::of(descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST))
    }

    /// A connection takes two descriptors. Half is left to everything else: the resolver's sockets, files, inits.
    fn of(descriptors: usize) -> Self {
        let descriptors = descriptors.min(MOST);
        let connections = descriptors / 4;
        Self {
            connections: Arc::new(Semaphore::new(connections)),
            share: (connections / 2).min(CONNECTIONS),
            much: Arc::new(Semaphore::new(MUCH)),
            bodies: Arc::default(),
        }
    }

    /// For as long as a large buffer is there. `None`: enough are.
    pub(super) fn for_much(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.much).try_acquire_owned().ok()
    }
}

/// Connections of one sandbox at once; more wait in the kernel.
const CONNECTIONS: usize = 4096;
/// Large buffers of all sandboxes at once: so many MiB of memory at the most.
const MUCH: usize = 64;
/// Descriptors that are counted on, however many there may be.
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sandbox_has_more_than_half_and_half_is_left() {
        for descriptors in [256, 1024, 20_000, 1 << 20] {
            let room = Room::of(descriptors);
            let connections = room.connections.available_permits();
            assert!(room.share * 2 <= connections && room.share > 0, "{descriptors}");
            assert!(2 * connections * 2 <= descriptors, "{descriptors}: {connections}");
        }
        assert!(Room::of(20_000).share >= 1000);
    }
}
