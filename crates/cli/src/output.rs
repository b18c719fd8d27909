//! Writing to standard output and standard error: whole, at once, and without standing still while a slow
//! reader keeps a signal waiting.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
}

/// Passes a command's bytes on, unbuffered.
pub(crate) async fn pass_on(sink: Sink, bytes: &[u8]) -> Result<(), Failure> {
    write_patiently(sink.fd(), bytes).await.map_err(Failure::Output)
}

impl Sink {
    /// Where to write. A terminal that polls as writable may have room for one byte only and block for the rest; opened
    /// again, it need not, and nobody else's descriptor changes. Where it cannot be (it may be another user's), ours it is.
    fn fd(self) -> BorrowedFd<'static> {
        static TERMINALS: [OnceLock<Option<OwnedFd>>; 2] = [const { OnceLock::new() }; 2];
        let (given, own) = match self {
            Self::Stdout => (rustix::stdio::stdout(), &TERMINALS[0]),
            Self::Stderr => (rustix::stdio::stderr(), &TERMINALS[1]),
        };
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let again = || open(format!("/proc/self/fd/{}", given.as_raw_fd()), flags, Mode::empty()).ok();
        own.get_or_init(|| given.is_terminal().then(again).flatten()).as_ref().map_or(given, AsFd::as_fd)
    }
}

/// Prints the answer to what was asked.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Output)
}

/// Says something on standard error. Where that is closed there is nowhere left to say so.
pub(crate) fn note(text: &str) {
    io::stderr().write_all(text.as_bytes()).unwrap_or(());
}

/// A blocking write would keep the single-threaded runtime from seeing Ctrl-C, and setting `O_NONBLOCK`
/// would change the descriptor for everybody who shares it. So: write only what cannot block.
async fn write_patiently(fd: BorrowedFd<'static>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        if !is_writable(fd, Some(&AT_ONCE))? {
            // The thread may wait for ever; ending zeno does not wait for it.
            tokio::task::spawn_blocking(move || is_writable(fd, None)).await.map_err(io::Error::other)??;
            continue;
        }
        match rustix::io::write(fd, &bytes[..bytes.len().min(NEVER_BLOCKS)]) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // Less room than the next character needs.
            Err(Errno::AGAIN) => tokio::time::sleep(MOMENT).await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_writable(fd: BorrowedFd<'_>, patience: Option<&Timespec>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    match poll(&mut fds, patience) {
        // A broken pipe counts as writable: the write then says so.
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

const MOMENT: Duration = Duration::from_millis(5);
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// `PIPE_BUF`: a pipe that polls as writable has room for this much.
const NEVER_BLOCKS: usize = 4096;
