//! `zeno run` at a real terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use model::exec::{FrameKind, Outcome, Window};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::daemon::Daemon;
use crate::program::{send, wait, zeno};
use crate::session::{begin, finish};

/// Both ends of a terminal of 40 by 100.
fn terminal() -> (OwnedFd, OwnedFd) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    resize(&terminal, 40, 100);
    (controller, terminal)
}

fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

#[test]
fn keys_go_through_raw_the_size_is_followed_and_the_terminal_is_given_back() {
    let daemon = Daemon::start(|request, mut wire| {
        let asked = begin(&request, &mut wire);
        assert_eq!(asked.exec.tty, Some(Window { rows: 40, columns: 100 }));
        wire.say(FrameKind::Stdout, b"ready");
        let typed = wire.hear();
        // Told, so that the two cannot overtake each other.
        wire.say(FrameKind::Stdout, b"typed");
        let resized = wire.hear();
        finish(&mut wire, &Outcome::Exited { code: 0 });
        (typed, resized)
    });
    let (controller, terminal) = terminal();
    let end = || File::from(terminal.try_clone().unwrap());
    let mut child =
        zeno(daemon.home(), &["run", "vi"]).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let echoes = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ISIG);

    let mut screen = File::from(controller.try_clone().unwrap());
    screen.read_exact(&mut [0; 5]).unwrap();
    assert!(!echoes(), "raw while the command runs");
    // Ctrl-C is a key like any other now.
    rustix::io::write(&controller, b"\x03").unwrap();
    screen.read_exact(&mut [0; 5]).unwrap();
    resize(&terminal, 50, 132);
    send(&child, Signal::WINCH);

    assert_eq!(wait(&mut child).code(), Some(0));
    assert!(echoes(), "given back");
    let (typed, resized) = daemon.end();
    assert_eq!(typed, Some((FrameKind::Stdin, vec![3])));
    assert_eq!(resized, Some((FrameKind::Resize, br#"{"rows":50,"columns":132}"#.to_vec())));
}
