//! Ctrl-C and SIGTERM: noted, and asked for between steps, so that everything that was set up is taken down on the
//! way out as on any other way out. A second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::signal::unix::{SignalKind, signal};

use super::RigError;

static TOLD: AtomicBool = AtomicBool::new(false);

/// Listens from now on.
pub(crate) fn watch() -> Result<(), RigError> {
    let (listening, heard) = mpsc::channel();
    std::thread::spawn(move || {
        // Whoever waits for the answer may have given up on it.
        if let Err(error) = listen(&listening) {
            listening.send(Err(error)).unwrap_or_default();
        }
    });
    heard.recv().expect("the thread answers before it ends").map_err(RigError::Watch)
}

/// Has someone asked to end?
pub(crate) fn check() -> Result<(), RigError> {
    if TOLD.load(Ordering::Relaxed) { Err(RigError::Interrupted) } else { Ok(()) }
}

#[expect(clippy::exit, reason = "asked for twice: whoever asks does not want to wait for the clean-up")]
fn listen(listening: &mpsc::Sender<std::io::Result<()>>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        listening.send(Ok(())).unwrap_or_default();
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if TOLD.swap(true, Ordering::Relaxed) {
                eprintln!("\nended at once: the daemon and the scratch folder stay behind");
                std::process::exit(130);
            }
            eprintln!("\ntold to end; cleaning up (once more: end at once)");
        }
    })
}
