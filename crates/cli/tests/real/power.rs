//! What a sandbox wrote before the machine ended without warning: kept, and not taken for whole without a word.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::{Home, is_gone};
use crate::traces::below_launcher;
use crate::wait::until;

/// What the record of a sandbox is silent about, and its status is not.
fn told(home: &Home, name: &str) -> Vec<String> {
    let status = home.json(&["status", name]);
    let caveats = status["sandbox"]["caveats"].as_array().unwrap().iter();
    let lost = caveats.filter(|caveat| caveat["kind"] == "durability");
    lost.map(|caveat| caveat["text"].as_str().unwrap().to_owned()).collect()
}

fn plan(home: &Home, name: &str) -> PathBuf {
    let id = home.json(&["get", name])["id"].as_str().unwrap().to_owned();
    home.path().join("sandboxes").join(id).join("plan.json")
}

/// As if the machine had been started anew since.
fn reboot(home: &Home, plans: &[PathBuf]) {
    let daemon = home.daemon().unwrap();
    let inits = below_launcher(daemon, "zeno-init");
    home.crash();
    for pid in inits {
        // One whose sandbox was stopped has ended already.
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap_or_default();
        until("the end of an init", || is_gone(pid).then_some(()));
    }
    for path in plans {
        let mut stored: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        if !stored["ran_in"].is_null() {
            stored["ran_in"] = Value::from("another-boot");
        }
        fs::write(path, serde_json::to_vec(&stored).unwrap()).unwrap();
    }
}

#[test]
fn what_may_be_lost_with_the_power_is_told_and_what_was_stopped_is_not_in_doubt() {
    let home = Home::new();
    for name in ["running", "stopped", "killed"] {
        home.create(name, &[]);
        assert_eq!(home.exec(name, "echo text > /var/tmp/file").code, 0);
    }
    home.ok(&["stop", "stopped"]);
    let plans = ["running", "stopped"].map(|name| plan(&home, name));
    reboot(&home, &plans);

    assert_eq!(home.state("running"), "failed");
    let lost = told(&home, "running");
    assert!(lost.len() == 1 && lost[0].contains("power") && lost[0].contains("zeno rollback"), "{lost:?}");
    // The control: one on disk by intention, and one that ended while the machine went on.
    for name in ["stopped", "killed"] {
        assert_eq!(told(&home, name), [""; 0], "{name}");
    }

    // It stays true of it, and of what is made of it.
    home.ok(&["start", "running"]);
    assert_eq!(home.exec("running", "cat /var/tmp/file").out(), "text\n");
    assert_eq!(told(&home, "running"), lost);
    home.ok(&["stop", "running"]);
    home.ok(&["snapshot", "running", "--name", "later"]);
    home.ok(&["restore", "later", "--name", "copy"]);
    assert_eq!(told(&home, "copy"), lost);
    home.ok(&["start", "stopped"]);
    assert_eq!(told(&home, "stopped"), [""; 0]);
}
