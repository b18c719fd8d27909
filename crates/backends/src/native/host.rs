//! What this machine can do for sandboxes.

use std::path::Path;

use model::doctor::Report;

use super::Native;

/// What `zeno doctor` shows where no backend could be opened. Asks the kernel anew.
#[must_use]
pub fn doctor(home: &Path) -> Report {
    engine::machine::report(&engine::machine::probe(home), home)
}

impl Native {
    /// What `zeno doctor` shows. Asked of the kernel once, when the backend was opened.
    #[must_use]
    pub fn doctor(&self) -> Report {
        engine::machine::report(&self.0.machine, &self.0.home)
    }
}
