//! The HTTP API as any client sees it.

use std::fs;

use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn health_and_the_document() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let health = home.ask("GET", "/healthz", b"").json();
    assert_eq!(health, json!({ "version": env!("CARGO_PKG_VERSION"), "pid": home.daemon().unwrap() }));
    let served = home.ask("GET", "/v1/openapi.json", b"");
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(served.json(), serde_json::to_value(server::openapi()).unwrap());
    assert_eq!(served.json(), serde_json::from_str::<Value>(&home.ok(&["openapi"])).unwrap());
    let unknown = home.ask("GET", "/v1/nothing", b"");
    assert_eq!((unknown.status, unknown.json()["code"].clone()), (404, json!("not_found")));
    assert_eq!(home.ask("POST", "/healthz", b"").status, 405);
}

#[test]
fn a_command_as_lines() {
    let home = Home::new();
    home.create("box", &[]);
    let request = json!({ "argv": ["sh", "-c", "cat; echo out; printf '\\377' >&2; exit 4"] }).to_string();
    let answer = home.ask("POST", "/v1/sandboxes/box/exec", request.as_bytes());
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let lines = answer.lines();
    assert_eq!(lines[0]["kind"], "started");
    assert!(lines.contains(&json!({ "kind": "stdout", "text": "out\n" })), "{lines:?}");
    assert!(lines.contains(&json!({ "kind": "stderr", "bytes": "/w==" })), "{lines:?}");
    assert_eq!(
        lines.last().unwrap(),
        &json!({ "kind": "ended", "outcome": { "kind": "exited", "code": 4 } })
    );

    let run =
        json!({ "create": { "workspace": "none" }, "exec": { "argv": ["/bin/echo", "hi"] } }).to_string();
    let kinds: Vec<_> =
        home.ask("POST", "/v1/run", run.as_bytes()).lines().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["sandbox", "started", "stdout", "ended", "removed"]);

    let bad = home.ask("POST", "/v1/sandboxes/box/exec", br#"{"argv":["true"],"colour":1}"#);
    assert_eq!((bad.status, bad.json()["code"].clone()), (400, json!("bad_request")));
    let none = home.ask("POST", "/v1/sandboxes/box/exec", b"{}");
    assert_eq!((none.status, none.json()["detail"].clone()), (400, json!("no command was given")));
}

/// A first capture is counted beside the work, which takes many times as long. A second one copies what changed.
#[test]
fn a_first_capture_says_of_how_many_files() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let folder = home.yard().join("many");
    for part in 0..40 {
        let part = folder.join(part.to_string());
        fs::create_dir_all(&part).unwrap();
        (0..100).for_each(|file| fs::write(part.join(file.to_string()), "text").unwrap());
    }
    let create = json!({ "workspace": { "folder": folder } });
    let run = json!({ "create": create, "exec": { "argv": ["/bin/true"] } }).to_string();
    let reports = || -> Vec<Value> {
        let lines = home.ask("POST", "/v1/run", run.as_bytes()).lines();
        assert_eq!(lines.last().unwrap()["kind"], "removed", "{lines:?}");
        let reports = lines.into_iter().filter(|line| line["kind"] == "progress");
        reports.map(|line| line["progress"].clone()).collect()
    };
    let first = reports();
    let totals: Vec<_> = first.iter().filter_map(|report| report["total"].as_u64()).collect();
    assert!(!totals.is_empty() && totals.iter().all(|total| *total == 4000), "{first:?}");
    let files: Vec<_> = first.iter().map(|report| report["files"].as_u64().unwrap()).collect();
    assert!(files.is_sorted() && files.iter().all(|files| *files <= 4000), "{files:?}");

    fs::write(folder.join("0/new"), "text").unwrap();
    let second = reports();
    assert!(second.iter().all(|report| report.get("total").is_none()), "{second:?}");
}

#[test]
fn events_are_pushed_and_resumed() {
    let home = Home::new();
    home.create("box", &[]);
    let sse = [("accept", "text/event-stream")];
    let mut stream = home.http();
    let answer = stream.open("GET", "/v1/events", &sse, b"");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let past = stream.read_until(&answer, "id: 3\n");
    assert!(past.contains("event: dev.zeno.sandbox.requested\n"), "{past}");
    home.exec("box", "true");
    stream.read_until(&answer, "event: dev.zeno.sandbox.active\n");

    let mut resumed = home.http();
    let answer = resumed.open("GET", "/v1/events", &[sse[0], ("last-event-id", "3")], b"");
    let next = resumed.read_until(&answer, "\n\n");
    assert!(next.contains("id: 4\n") && !next.contains("id: 3\n"), "{next}");
}

#[test]
fn a_log_is_followed() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo one");
    let mut stream = home.http();
    let answer = stream.open("GET", "/v1/sandboxes/box/logs?follow", &[], b"");
    stream.read_until(&answer, "one\\n");
    home.exec("box", "echo two");
    stream.read_until(&answer, "two\\n");
    home.ok(&["destroy", "box"]);
    while stream.piece(&answer).is_some() {}
}
