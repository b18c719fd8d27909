//! What this machine can do for sandboxes.

use model::doctor::Report;

use super::Native;

impl Native {
    /// What `zeno doctor` shows. Asked of the kernel once, when the backend was opened.
    #[must_use]
    pub fn doctor(&self) -> Report {
        engine::machine::report(&self.0.machine, &self.0.home)
    }
}
