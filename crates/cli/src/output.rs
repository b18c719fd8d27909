//! Writing to standard output and standard error: whole, at once, and without standing still while a slow
//! reader keeps a signal waiting.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
}

/// Passes a command's bytes on, unbuffered.
pub(crate) async fn pass_on(sink: Sink, bytes: &[u8]) -> Result<(), Failure> {
    let fd = match sink {
        Sink::Stdout => rustix::stdio::stdout(),
        Sink::Stderr => rustix::stdio::stderr(),
    };
    write_patiently(fd, bytes).await.map_err(Failure::Output)
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
            Err(Errno::INTR | Errno::AGAIN) => {}
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

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// `PIPE_BUF`: a pipe that polls as writable has room for this much.
const NEVER_BLOCKS: usize = 4096;
