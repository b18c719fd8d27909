//! The life of a sandbox, from its making to its end, and what is told of it.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::wait::until;

#[test]
fn a_life_with_every_turn() {
    let home = Home::new();
    assert_eq!(home.ok(&["create", "--no-workspace", "--name", "web", "--label", "team=a"]), "web\n");
    let id = home.json(&["get", "web"])["id"].as_str().unwrap().to_owned();
    assert_eq!(home.ok(&["list", "-q"]), format!("{id}\n"));
    assert_eq!(home.json(&["get", &id[..8]])["labels"], json!({ "team": "a" }));
    assert_eq!(home.json(&["status", "web"])["sandbox"]["state"], "ready");
    assert_eq!(home.state("web"), "ready");
    home.exec("web", "echo kept > /var/tmp/kept");
    assert_eq!(home.state("web"), "active");
    home.detach("web", "sleep 1000");
    assert_eq!(home.ok(&["pause", "web"]), "web  paused\n");
    assert_eq!(home.ok(&["resume", "web"]), "web  active\n");
    assert_eq!(home.ok(&["stop", "web"]), "web  stopped\n");
    assert_eq!(home.ok(&["start", "web"]), "web  ready\n");
    let ran = home.exec("web", "cat /var/tmp/kept; ps -eo args | grep -c '[s]leep 1000'");
    assert_eq!(ran.out(), "kept\n0\n", "files stay, processes do not");
    assert_eq!(home.ok(&["destroy", "web"]), "web\n");
    assert_eq!(home.ok(&["list", "-q"]), "");
    assert_eq!(home.json(&["get", &id])["state"], "destroyed");

    let walk = [
        "requested",
        "provisioning",
        "ready",
        "active",
        "paused",
        "active",
        "stopped",
        "provisioning",
        "ready",
        "active",
        "destroying",
        "destroyed",
    ];
    let events = home.ok(&["events", "--json"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(states(&events), walk);
    for (event, from) in events[1..].iter().zip(walk) {
        assert_eq!(event["data"]["from"], from);
    }
    assert!(events.iter().enumerate().all(|(at, event)| event["sequence"] == at + 1));
    assert!(events.iter().all(|event| event["subject"] == id.as_str() && event["data"]["name"] == "web"));
}

fn states(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["data"]["to"].as_str().unwrap()).collect()
}

#[test]
fn a_paused_process_stands_still_and_goes_on() {
    let home = Home::new();
    home.create("box", &[]);
    let number = home.detach("box", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done");
    let count = || home.ok(&["logs", "--exec", &number, "box"]).lines().count();
    until("it to count", || (count() > 3).then_some(()));
    home.ok(&["pause", "box"]);
    let paused = count();
    // Long enough for a dozen more if it went on.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(count(), paused);

    insta::assert_snapshot!(home.plain(&home.exec("box", "true")), @"
    ------- stderr -------
    error: cannot run a command in sandbox `box`: it is paused
      try: wake it up first: `zeno resume box`
    [exit 125]
    ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["pause", "box"])), @"
    ------- stderr -------
    error: cannot pause sandbox `box`: it is paused
      try: wake it up first: `zeno resume box`
    [exit 3]
    ");
    home.ok(&["resume", "box"]);
    until("it to go on", || (count() > paused + 3).then_some(()));
    home.ok(&["pause", "box"]);
    home.ok(&["destroy", "box"]);
}

#[test]
fn a_lifetime_ends_in_stop_or_destroy() {
    let home = Home::new();
    // Long enough for a loaded machine to get to the next line.
    home.create("stops", &["--ttl", "10s"]);
    home.detach("stops", "sleep 1000");
    home.create("extended", &["--ttl", "10s"]);
    home.ok(&["extend", "extended", "--ttl", "1h"]);
    home.create("goes", &["--ttl", "1s", "--on-expire", "destroy"]);
    home.create("idles", &["--idle", "4s"]);
    let idle = Instant::now();
    home.exec("idles", "sleep 4.5; echo > /var/tmp/mine");
    assert!(idle.elapsed() > Duration::from_millis(4500), "a busy one is not idle");
    until("stops to expire", || (home.state("stops") == "expired").then_some(()));
    until("idles to expire", || (home.state("idles") == "expired").then_some(()));
    until("goes to go", || (home.zeno(&["get", "goes"]).code == 6).then_some(()));
    assert_eq!(home.state("extended"), "ready");
    let reason = home.json(&["get", "idles"])["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "no command ran in it for 4s (its idle limit)");
    let ran = home.exec("stops", "true");
    assert_eq!(ran.code, 125);
    assert!(ran.err().contains("it is expired") && ran.err().contains("zeno start stops"), "{ran}");
    home.ok(&["start", "idles"]);
    assert_eq!(home.exec("idles", "test -e /var/tmp/mine").code, 0);
}

#[test]
fn a_lifetime_needs_no_daemon() {
    let home = Home::new();
    home.create("box", &["--ttl", "8s"]);
    home.detach("box", "sleep 1000");
    home.crash();
    assert!(!home.processes().is_empty(), "they outlive the daemon");
    until("the processes to end", || home.processes().is_empty().then_some(()));
    assert_eq!(home.daemon(), None, "nobody else ended them");
    assert_eq!(home.state("box"), "expired");
}
