//! `zeno run` at a real terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::Duration;

use model::Sandbox;
use model::exec::{FrameKind, Outcome, Progress, Window};
use model::sandbox::CreateStep;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::daemon::Daemon;
use crate::program::{output, send, text, wait, zeno};
use crate::session::{begin, finish, started};

/// Both ends of a terminal of 40 by 100.
fn terminal() -> (OwnedFd, OwnedFd) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    resize(&terminal, 40, 100);
    (controller, terminal)
}

fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

/// A daemon that captures a workspace, twice as long as it takes to be shown, or until the test has seen enough.
fn capturing() -> (Daemon<()>, mpsc::Sender<()>) {
    let (enough, stop) = mpsc::channel();
    let daemon = Daemon::start(move |request, mut wire| {
        assert_eq!(request.line, "POST /v1/run");
        wire.upgrade();
        for files in 0..100 {
            wire.tell(FrameKind::Progress, &Progress::Capturing { files, bytes: 1024, total: Some(20_000) });
            if stop.recv_timeout(Duration::from_millis(10)).is_ok() {
                break;
            }
        }
        wire.tell(FrameKind::Started, &started(false));
        finish(&mut wire, &Outcome::Exited { code: 0 });
    });
    (daemon, enough)
}

/// The same, told as lines to whoever makes a sandbox.
fn capturing_for_create() -> (Daemon<()>, mpsc::Sender<()>) {
    let (enough, stop) = mpsc::channel();
    let sandbox = r#"{"id":"sbaaaaaaaaaaaa","state":"ready","backend":"native","created":"2026-05-01T12:00:00Z",
        "changed":"2026-05-01T12:00:00Z","cwd":"/","net":"none","limits":{},"actor":"adm"}"#;
    let sandbox: Box<Sandbox> = serde_json::from_str(sandbox).unwrap();
    let daemon = Daemon::start(move |request, mut wire| {
        assert_eq!(request.line, "POST /v1/sandboxes?steps=true");
        wire.begin_lines();
        for files in 0..100 {
            let progress = Progress::Capturing { files, bytes: 1024, total: Some(20_000) };
            wire.line(&CreateStep::Progress { progress });
            if stop.recv_timeout(Duration::from_millis(10)).is_ok() {
                break;
            }
        }
        wire.line(&CreateStep::Made { sandbox });
    });
    (daemon, enough)
}

#[test]
fn a_long_first_capture_is_a_bar_at_a_terminal() {
    a_bar_is_shown(capturing(), &["run", "--no-tty", "make"]);
    a_bar_is_shown(capturing_for_create(), &["create"]);
}

fn a_bar_is_shown((daemon, enough): (Daemon<()>, mpsc::Sender<()>), words: &[&str]) {
    let (controller, terminal) = terminal();
    let end = || File::from(terminal.try_clone().unwrap());
    let mut child = zeno(daemon.home(), words).stdout(end()).stderr(end()).spawn().unwrap();
    let mut screen = File::from(controller);
    let mut shown = String::new();
    while !shown.contains(" left") {
        let mut bytes = [0; 1024];
        let length = screen.read(&mut bytes).unwrap();
        shown += &String::from_utf8_lossy(&bytes[..length]);
    }
    assert!(shown.contains("freezing the workspace: 1.0 KiB ["), "{shown}");
    assert!(shown.contains("/20,000 files, "), "{shown}");
    enough.send(()).unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
    daemon.end();
}

#[test]
fn a_long_first_capture_is_silent_where_nobody_watches() {
    let (daemon, _never) = capturing();
    let ended = output(daemon.home(), &["run", "make"]);
    daemon.end();
    assert_eq!((ended.status.code(), text(&ended.stdout), text(&ended.stderr)), (Some(0), "", ""));
    let (daemon, _never) = capturing_for_create();
    let ended = output(daemon.home(), &["create"]);
    daemon.end();
    let told = (ended.status.code(), text(&ended.stdout), text(&ended.stderr));
    assert_eq!(told, (Some(0), "sbaaaaaaaaaaaa\n", ""));
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
