//! `zeno doctor` where no daemon can be started: the whole table all the same, and why.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use model::doctor::{Check, Finding, Report};

use crate::home::{Home, Ran, finish, is_root, program};

#[test]
fn a_home_that_cannot_be_made_is_named_in_the_table() {
    let home = Home::new();
    fs::write(home.yard().join("file"), "").unwrap();
    let nowhere = home.yard().join("file/home");
    let ran = doctor(&home, &nowhere, &[]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.out().contains("missing  state-directory"), "{ran}");
    assert!(ran.out().contains("No sandbox can be made on this machine"), "{ran}");
    assert!(ran.err().contains("Not a directory"), "{ran}");
    assert!(!ran.err().contains("zeno doctor"), "that is what was asked: {ran}");

    let report = report(&doctor(&home, &nowhere, &["--json"]));
    assert!(!report.usable);
    assert_eq!(check(&report, "state-directory").verdict, Finding::Missing);
    // What does not depend on the home is looked at all the same.
    assert_eq!(check(&report, "kernel").verdict, Finding::Good);
    assert_eq!(check(&report, "user-namespaces").verdict, Finding::Good);
    if is_root() {
        assert_eq!(check(&report, "idmapped-root").verdict, Finding::Good);
    }
}

#[test]
fn a_home_that_the_daemon_refuses_is_zenos_failure_not_the_machines() {
    let home = Home::new();
    // A folder where the log should be: the machine can do everything, the daemon cannot start.
    let blocked = home.yard().join("blocked");
    fs::create_dir_all(blocked.join("daemon.log")).unwrap();
    let ran = doctor(&home, &blocked, &[]);
    assert_eq!(ran.code, 7, "{ran}");
    assert!(ran.out().contains("Sandboxes can be made on this machine."), "{ran}");
    assert!(ran.err().contains("the daemon did not start"), "{ran}");
    assert!(ran.err().contains("daemon.log"), "the daemon's own words: {ran}");
}

#[test]
fn without_user_namespaces_the_setting_and_its_remedy_are_named() {
    let home = Home::new();
    let bare = home.yard().join("bare");
    // The setting counts per user namespace, so one of our own can be told to have none below it.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]).arg(program()).arg("doctor");
    command.env("ZENO_HOME", &bare).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = finish(command.spawn().unwrap(), b"");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.out().contains("missing  user-namespaces  refused"), "{ran}");
    assert!(ran.out().contains("mend   sudo sysctl -w user.max_user_namespaces="), "{ran}");
    assert!(ran.err().contains("could not make a user namespace"), "{ran}");
}

fn doctor(home: &Home, at: &Path, more: &[&str]) -> Ran {
    let mut command = home.command(&[&["doctor"], more].concat());
    finish(command.env("ZENO_HOME", at).spawn().unwrap(), b"")
}

fn report(ran: &Ran) -> Report {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

fn check<'a>(report: &'a Report, name: &str) -> &'a Check {
    report.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name}: {report:?}"))
}
