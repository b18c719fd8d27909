//! Removing what sandboxes of this daemon left behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use model::SandboxId;

use super::Error;
use super::group::{children, remove};
use super::layout::{Controller, Layout};

impl Layout {
    /// Removes this daemon's own directories, for its end. Where sandboxes live on they stay, and the next daemon finds
    /// them. `patience` is for processes that are ending: on a busy machine that takes a while.
    pub fn forget(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        for place in Controller::ALL.into_iter().filter_map(|controller| self.place(controller).ok()) {
            if let Err(error) = remove(&self.root(place), deadline) {
                tracing::debug!(%error, "a cgroup is still in use");
            }
        }
    }

    /// Removes the cgroups of every sandbox of this home that is not in `alive`. Goes on after a failure and
    /// returns them all: a leftover that still has processes is for the caller to end first.
    #[must_use]
    pub fn sweep(&self, alive: &[SandboxId]) -> Vec<Error> {
        let places: BTreeSet<_> =
            Controller::ALL.into_iter().filter_map(|controller| self.place(controller).ok()).collect();
        let mut failures = Vec::new();
        for root in places.into_iter().map(|place| self.root(place)) {
            let leftovers = match children(&root) {
                Ok(directories) => directories,
                Err(source) => {
                    failures.push(Error::Read { path: root, source });
                    continue;
                }
            };
            for directory in leftovers {
                let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
                let id = name.and_then(|name| name.parse::<SandboxId>().ok());
                if id.is_some_and(|id| !alive.contains(&id)) {
                    failures.extend(remove(&directory, Instant::now()).err());
                }
            }
        }
        failures
    }
}
