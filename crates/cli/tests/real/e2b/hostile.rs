//! Clients that mean no good: errors for them, and nothing of it for anybody else.

use std::fs;

use super::{Client, Door};

#[track_caller]
fn attacked(script: &str) {
    let door = Door::open();
    let daemon = door.home.daemon().unwrap();
    // Sandboxes have a folder of their own there.
    let folder = tempfile::Builder::new().prefix("zeno-secret-").tempdir_in("/tmp").unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "of the host").unwrap();
    let variables = [("DAEMON", daemon.to_string()), ("HOST_SECRET", secret.display().to_string())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    door.run(Client::Blocking, script, &[], &variables);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host");
    assert_eq!(door.home.daemon(), Some(daemon), "the same daemon still answers");
    let log = fs::read_to_string(door.home.path().join("daemon.log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn wrong_tokens_hosts_origins_and_names() {
    attacked("hostile_names.py");
}

#[test]
fn broken_messages_and_frames() {
    attacked("hostile_frames.py");
}

#[test]
fn giant_slow_and_torn_bodies() {
    attacked("hostile_bodies.py");
}

#[test]
fn tricks_in_file_names() {
    attacked("hostile_paths.py");
}
