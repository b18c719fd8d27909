//! Starting the program, and waiting for it with an end.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// `zeno` with pipes on all three ends and an environment of which the test knows all.
pub(crate) fn zeno(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeno"));
    command
        .args(arguments)
        .env_clear()
        .env("ZENO_HOME", home)
        .env("SSH_AUTH_SOCK", "/run/agent")
        .env("TERM", "xterm-test")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Everything a short call says.
pub(crate) fn output(home: &Path, arguments: &[&str]) -> Output {
    zeno(home, arguments).output().unwrap()
}

pub(crate) fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The end of a child that may not outlive the test's patience.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("zeno did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
