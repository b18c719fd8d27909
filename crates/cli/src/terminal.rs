//! The terminal the user sits at: what is one, how large it is, and raw mode that is always taken back.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use model::exec::Window;
use rustix::fs::{FileType, makedev};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminals {
    pub(crate) stdin: Input,
    pub(crate) stdout: bool,
    /// Of whichever of the two is a terminal.
    pub(crate) window: Option<Window>,
}

/// What standard input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Terminal,
    /// `/dev/null`: there is nothing to hand on, so nobody needs to read.
    Null,
    /// A pipe, a file, a socket.
    Stream,
}

impl Input {
    fn look() -> Self {
        let is_null = rustix::fs::fstat(rustix::stdio::stdin()).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
                && stat.st_rdev == makedev(1, 3)
        });
        match () {
            () if is_null => Self::Null,
            () if io::stdin().is_terminal() => Self::Terminal,
            () => Self::Stream,
        }
    }
}

impl Terminals {
    /// What terminals had before they could be asked.
    pub(crate) const DEFAULT_WINDOW: Window = Window { rows: 24, columns: 80 };

    pub(crate) fn look() -> Self {
        Self { stdin: Input::look(), stdout: io::stdout().is_terminal(), window: window() }
    }

    pub(crate) fn window_or_default(self) -> Window {
        self.window.unwrap_or(Self::DEFAULT_WINDOW)
    }
}

/// The size of the terminal on standard output, else input.
pub(crate) fn window() -> Option<Window> {
    [rustix::stdio::stdout(), rustix::stdio::stdin()]
        .into_iter()
        .find_map(|fd| tcgetwinsize(fd).ok())
        .filter(|size| size.ws_row > 0 && size.ws_col > 0)
        .map(|size| Window { rows: size.ws_row, columns: size.ws_col })
}

/// Every key goes to the command, unseen and unchanged. Ends when dropped, and in a panic, where release
/// builds drop nothing.
#[derive(Debug)]
pub(crate) struct RawMode<'fd> {
    terminal: BorrowedFd<'fd>,
    original: Termios,
}

impl RawMode<'static> {
    /// Raw mode on standard input, where that is a terminal.
    pub(crate) fn of_stdin() -> io::Result<Option<Self>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let raw = Self::enter(rustix::stdio::stdin())?;
        restore_in_panic(raw.original.clone());
        Ok(Some(raw))
    }
}

impl<'fd> RawMode<'fd> {
    fn enter(terminal: BorrowedFd<'fd>) -> io::Result<Self> {
        let original = tcgetattr(terminal)?;
        let mut raw = original.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Drain, &raw)?;
        Ok(Self { terminal, original })
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        restore(self.terminal, &self.original);
    }
}

fn restore_in_panic(original: Termios) {
    static ORIGINAL: OnceLock<Termios> = OnceLock::new();
    if ORIGINAL.set(original).is_err() {
        // The hook is already there; the terminal's first state is the one to return to.
        return;
    }
    let inner = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(original) = ORIGINAL.get() {
            restore(rustix::stdio::stdin(), original);
        }
        inner(panic);
    }));
}

fn restore(terminal: BorrowedFd<'_>, original: &Termios) {
    // It fails only when the terminal is gone, and then there is nothing to restore.
    tcsetattr(terminal, OptionalActions::Drain, original).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::LocalModes;

    use super::*;

    #[test]
    fn raw_mode_is_taken_back_on_a_real_terminal() {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();

        let echoes =
            || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ISIG);
        assert!(echoes());
        let raw = RawMode::enter(terminal.as_fd()).unwrap();
        assert!(!echoes());
        drop(raw);
        assert!(echoes());
    }
}
