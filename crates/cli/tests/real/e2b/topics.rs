//! Topic by topic. What an old release does not know, its scripts leave out.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::Client::{self, Async, Blocking, Node, Python2_20, Python2_45};
use super::Door;

const PYTHON: &[Client] = &[Blocking, Async, Python2_45, Python2_20];

/// One daemon for them all, one process for each.
#[track_caller]
fn with(clients: &[Client], script: &str) {
    let door = Door::open();
    for client in clients {
        door.topic(*client, script);
    }
}

#[test]
fn the_script_of_the_contract() {
    with(&[Blocking, Python2_45], "appendix.py");
}

#[test]
fn lists_filters_pages_info_timeouts_metrics() {
    with(PYTHON, "lists.py");
}

#[test]
fn pause_and_resume() {
    with(PYTHON, "pause.py");
}

#[test]
fn snapshots_and_forks() {
    with(PYTHON, "snapshots.py");
}

#[test]
fn what_is_not_supported_is_refused() {
    with(PYTHON, "refusals.py");
}

#[test]
fn commands() {
    with(PYTHON, "commands.py");
}

#[test]
fn terminals() {
    with(PYTHON, "pty.py");
}

#[test]
fn files() {
    with(PYTHON, "files.py");
}

#[test]
fn watching() {
    with(PYTHON, "watch.py");
}

#[test]
fn signed_urls() {
    with(&[Blocking, Python2_45, Python2_20], "urls.py");
}

#[test]
fn ports() {
    with(&[Blocking], "ports.py");
    with(&[Node], "ports.mjs");
}

/// A Python with Jupyter where every user of every sandbox finds it: a build may lie in a private home, or below /tmp, which
/// sandboxes have empty.
#[test]
fn the_code_interpreter() {
    let public = Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().prefix("zeno-python-").permissions(public).tempdir_in("/var/tmp");
    let folder = folder.unwrap();
    let program = Blocking.program();
    let installed = program.ancestors().nth(2).unwrap();
    let copied = Command::new("cp").arg("-a").arg(installed).arg(folder.path().join("python")).status();
    assert!(copied.unwrap().success());
    let door = Door::with_python(&folder.path().join("python/bin"));
    door.topic(Blocking, "interpreter.py");
    door.topic(Async, "interpreter.py");
    door.topic(Node, "interpreter.mjs");
}

#[test]
fn control_in_javascript() {
    with(&[Node], "control.mjs");
}

#[test]
fn commands_in_javascript() {
    with(&[Node], "commands.mjs");
}

#[test]
fn files_in_javascript() {
    with(&[Node], "files.mjs");
}
