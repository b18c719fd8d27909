//! E2B's SDKs as their makers publish them, against a daemon with real sandboxes: one process for each topic and client.
//!
//! Nothing here needs a network: the clients talk to loopback, and what is reached out of a sandbox is in [`crate::net`].

mod clients;
mod crowd;
mod hostile;
mod topics;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::home::{Home, program};
pub(crate) use clients::Client;

/// A daemon that E2B's SDKs are led to.
pub(crate) struct Door {
    pub(crate) home: Home,
}

impl Door {
    fn open() -> Self {
        Self::with(|_daemon| ())
    }

    /// The `python3` of its sandboxes is the one in this folder.
    fn with_python(folder: &Path) -> Self {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", folder.display());
        Self::with(|daemon| _ = daemon.env("PATH", path))
    }

    fn with(prepare: impl FnOnce(&mut Command)) -> Self {
        let home = Home::new();
        let mut daemon = home.command(&["daemon", "--listen", "127.0.0.1:0"]);
        prepare(&mut daemon);
        let started = daemon.output().unwrap();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        assert!(home.daemon().is_some());
        Self { home }
    }

    /// Runs a script with this client, and expects it to have nothing to complain of.
    #[track_caller]
    fn topic(&self, client: Client, script: &str) {
        self.run(client, script, &[client.word()], &[]);
    }

    #[track_caller]
    fn run(&self, client: Client, script: &str, words: &[&str], variables: &[(&str, &str)]) {
        let mut command = led(&self.home, client, script, words);
        check(command.envs(variables.iter().copied()), &format!("{script} with {client:?}"));
    }
}

/// A script, as a user would start it: `eval "$(zeno env e2b)"`, and no other word of where it is led.
pub(crate) fn led(home: &Home, client: Client, script: &str, words: &[&str]) -> Command {
    let folder = scripts(home);
    let mut command = home.prepared("timeout");
    command.args(["--kill-after=5", LIMIT, "sh", "-ec", "eval \"$(\"$ZENO\" env e2b)\"; exec \"$@\"", "sh"]);
    command.arg(client.program());
    if client != Client::Node {
        command.arg(folder.join("run.py"));
    }
    command.arg(folder.join(script)).args(words).env("ZENO", program());
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(folder);
    command
}

#[track_caller]
pub(crate) fn check(command: &mut Command, what: &str) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{what} ended with {status}:\n{said}");
}

/// All scripts in a folder, as they import each other, and beside them the packages that those in JavaScript import.
fn scripts(home: &Home) -> PathBuf {
    let folder = home.yard().join("scripts");
    if !folder.exists() {
        fs::create_dir(&folder).unwrap();
        for (name, text) in SCRIPTS {
            fs::write(folder.join(name), text).unwrap();
        }
        symlink(clients::node_modules(), folder.join("node_modules")).unwrap();
    }
    folder
}

/// Seconds that a script may take: it finds what hangs, not what is slow.
const LIMIT: &str = "150";

macro_rules! scripts {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("scripts/", $name)))),*] };
}

const SCRIPTS: &[(&str, &str)] = scripts![
    "appendix.py",
    "attacker.py",
    "client.py",
    "commands.mjs",
    "commands.py",
    "control.mjs",
    "crowd.py",
    "files.mjs",
    "files.py",
    "hostile_bodies.py",
    "hostile_frames.py",
    "hostile_names.py",
    "hostile_paths.py",
    "interpreter.mjs",
    "interpreter.py",
    "leave.py",
    "lists.py",
    "network.py",
    "pause.py",
    "ports.mjs",
    "ports.py",
    "pty.py",
    "refusals.py",
    "run.py",
    "snapshots.py",
    "tools.mjs",
    "urls.py",
    "watch.py",
];
