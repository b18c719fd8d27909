//! Waiting with an end.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Generous: it finds what hangs, not what is slow, and the machine may be busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// Waits until a look gives something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(POLL);
    }
}

/// The end of a child that may not outlive the test's patience.
#[track_caller]
pub(crate) fn end(child: &mut Child) -> ExitStatus {
    until("the end of zeno", || child.try_wait().unwrap())
}
