//! What the user does while a command runs: typing, signals, changing the window.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::Control;
use crate::keys::{DetachKeys, Lookout, Typed};
use crate::output;
use crate::signal::SignalNumber;
use crate::terminal;

/// Standard input in pieces. When this is dropped, nobody reads any more: what is typed then is for who asks next.
#[derive(Debug)]
pub(super) struct Stdin {
    pieces: mpsc::Receiver<Vec<u8>>,
    /// Closed with this, which wakes the reader.
    _leave: OwnedFd,
}

impl Stdin {
    /// Read by a thread of its own: a read that nobody answers must not keep zeno from ending, and the runtime would wait
    /// for its own threads.
    pub(super) fn read() -> io::Result<Self> {
        let (left, leave) = pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, pieces) = mpsc::channel(4);
        std::thread::spawn(move || {
            if let Err(error) = hand_on(&left, &sender) {
                output::note(&format!("warning: cannot read standard input: {error}\n"));
            }
        });
        Ok(Self { pieces, _leave: leave })
    }

    /// The next piece; `None` at its end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.pieces.recv().await
    }
}

/// What is typed, on its way to the command.
#[derive(Debug)]
pub(super) struct Typing {
    /// Absent at its end.
    stdin: Option<Stdin>,
    lookout: Lookout,
}

impl Typing {
    pub(super) fn new(stdin: Option<Stdin>, keys: DetachKeys) -> Self {
        Self { stdin, lookout: Lookout::new(keys) }
    }

    /// The next piece; an empty one, once, at the end.
    pub(super) async fn next(&mut self) -> Typed {
        let Some(stdin) = &mut self.stdin else { return std::future::pending().await };
        loop {
            let piece = if self.lookout.holds_back() {
                match tokio::time::timeout(HELD_BACK, stdin.next()).await {
                    Ok(piece) => piece,
                    Err(_nothing_more) => return Typed::On(self.lookout.let_go()),
                }
            } else {
                stdin.next().await
            };
            let typed = match piece {
                Some(piece) => self.lookout.see(piece),
                None if self.lookout.holds_back() => Typed::On(self.lookout.let_go()),
                None => {
                    self.stdin = None;
                    return Typed::On(Vec::new());
                }
            };
            // All of it is held back. Handed on it would be the end of input.
            if typed != Typed::On(Vec::new()) {
                return typed;
            }
        }
    }
}

fn hand_on(left: &OwnedFd, pieces: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let mut buffer = vec![0; PIECE];
    loop {
        let mut ends = [
            PollFd::from_borrowed_fd(left.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stdin, PollFlags::IN),
        ];
        match poll(&mut ends, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if !ends[0].revents().is_empty() {
            return Ok(());
        }
        match rustix::io::read(stdin, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) if pieces.blocking_send(buffer[..length].to_vec()).is_err() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The signals that are the command's, not zeno's.
pub(super) struct Watched {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    hangup: Signal,
    window: Signal,
    tty: bool,
}

impl Watched {
    pub(super) fn listen(tty: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            window: signal(SignalKind::window_change())?,
            tty,
        })
    }

    /// Hands signals on until the user interrupts twice within a second.
    pub(super) async fn forward(mut self, controls: mpsc::Sender<Control>) {
        let mut last: Option<Instant> = None;
        loop {
            let control = tokio::select! {
                _ = self.interrupt.recv() => {
                    if last.is_some_and(|at| at.elapsed() < INSISTENCE) {
                        return;
                    }
                    last = Some(Instant::now());
                    Some(Control::Signal(SignalNumber::INT))
                }
                _ = self.quit.recv() => Some(Control::Signal(SignalNumber::QUIT)),
                _ = self.terminate.recv() => Some(Control::Signal(SignalNumber::TERM)),
                _ = self.hangup.recv() => Some(Control::Signal(SignalNumber::HUP)),
                _ = self.window.recv() => terminal::window().filter(|_| self.tty).map(Control::Resize),
            };
            // A full queue means that the command takes nothing at all; the second interrupt still leaves.
            if let Some(control) = control
                && let Err(refused) = controls.try_send(control)
            {
                output::note(&format!("warning: the command takes no signals now ({refused})\n"));
            }
        }
    }
}

/// As much as a pipe holds.
const PIECE: usize = 64 << 10;
/// How long the second of the keys to leave may take; then the first was meant for the command.
const HELD_BACK: Duration = Duration::from_secs(1);
/// Two interrupts within this time mean: away from here.
const INSISTENCE: Duration = Duration::from_secs(1);
