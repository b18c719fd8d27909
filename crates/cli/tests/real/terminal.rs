//! A terminal for `zeno` to run at.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::home::Home;
use crate::wait::{PATIENCE, until};

/// `zeno` on a terminal, with what it has shown so far.
#[derive(Debug)]
pub(crate) struct Screen {
    controller: File,
    terminal: File,
    child: Child,
    pub(crate) shown: String,
    passed: usize,
}

impl Screen {
    pub(crate) fn open(home: &Home, arguments: &[&str]) -> Self {
        Self::sized(home, arguments, 24, 80)
    }

    pub(crate) fn sized(home: &Home, arguments: &[&str], rows: u16, columns: u16) -> Self {
        Self::at(home.command(arguments), rows, columns)
    }

    /// One that can be drawn on: what moves on the screen is shown only where it is known how.
    pub(crate) fn drawn(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        command.env("TERM", "xterm");
        Self::at(command, 24, 120)
    }

    fn at(mut command: Command, rows: u16, columns: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal =
            File::from(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        resize(&terminal, rows, columns);
        let end = || terminal.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { controller: File::from(controller), terminal, child, shown: String::new(), passed: 0 }
    }

    pub(crate) fn type_in(&mut self, keys: &[u8]) {
        self.controller.write_all(keys).unwrap();
    }

    /// A window that changes tells the program.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.terminal, rows, columns);
        self.signal(Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Reads until this is on the screen after all that was waited for in this way before.
    pub(crate) fn next(&mut self, text: &str) {
        let before = self.shown.split_off(self.passed);
        let head = std::mem::replace(&mut self.shown, before);
        self.see(text);
        self.passed = head.len() + self.shown.find(text).unwrap() + text.len();
        self.shown.insert_str(0, &head);
    }

    /// Reads until this is on the screen.
    pub(crate) fn see(&mut self, text: &str) {
        let patience = Timespec::try_from(PATIENCE).unwrap();
        while !self.shown.contains(text) {
            assert!(self.read_on(&patience), "waited in vain for {text:?}: {}", self.shown);
        }
    }

    /// Reads what is there, or comes in time. `false`: nothing.
    fn read_on(&mut self, patience: &Timespec) -> bool {
        let spoke = poll(&mut [PollFd::new(&self.controller, PollFlags::IN)], Some(patience)).unwrap();
        let mut buffer = [0; 4096];
        let length = if spoke > 0 { self.controller.read(&mut buffer).unwrap() } else { 0 };
        self.shown += &String::from_utf8_lossy(&buffer[..length]);
        length > 0
    }

    /// Does it show what is typed, as it did before a program took it over?
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ISIG)
    }

    /// As terminals do, it goes on taking what is written to it meanwhile.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> i32 {
        let status = until("the end of zeno", || {
            while self.read_on(&AT_ONCE) {}
            self.child.try_wait().unwrap()
        });
        status.code().unwrap()
    }

    pub(crate) fn end(mut self) -> i32 {
        self.wait()
    }
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

fn resize(terminal: &File, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}
