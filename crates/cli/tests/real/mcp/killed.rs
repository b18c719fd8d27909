//! The daemon ends in the middle, and the client leaves in the middle.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::Place;
use crate::wait::{end, until};

/// A client that speaks by hand.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    fn of(place: &Place) -> Self {
        let mut command = place.home.command(&["mcp"]);
        let mut child = command.current_dir(&place.yard.path).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, stdin, stdout };
        let who = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who });
        client.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(client.hear()["id"], 0);
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, id: u32, name: &str, arguments: &Value) {
        let params = json!({ "name": name, "arguments": arguments });
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn leave(mut self) {
        drop(self.stdin.take());
        assert!(end(&mut self.child).success());
    }
}

fn sleeps(place: &Place, name: &str) -> bool {
    let execs = place.home.json(&["execs", name]);
    execs.as_array().unwrap().iter().any(|exec| exec.get("outcome").is_none())
}

#[test]
fn whoever_waits_for_a_daemon_that_is_killed_is_told_and_the_next_call_works() {
    let place = Place::new();
    let mut client = Client::of(&place);
    client.call(1, "sandbox_create", &json!({ "name": "box" }));
    assert_eq!(client.hear()["result"]["isError"], false);
    client.call(2, "sandbox_exec", &json!({ "sandbox": "box", "command": "sleep 1000", "timeout": "1h" }));
    until("the command", || sleeps(&place, "box").then_some(()));
    place.home.crash();
    let told = client.hear();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(2), &json!(-32000)), "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("daemon"), "{told}");

    client.call(3, "sandbox_exec", &json!({ "sandbox": "box", "command": "echo here" }));
    let answer = client.hear();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["output"]),
        (&json!(3), &json!("here\n")),
        "{answer}"
    );
    place.home.ok(&["daemon", "stop"]);
    client.call(4, "sandbox_exec", &json!({ "sandbox": "box", "command": "echo again" }));
    let answer = client.hear();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["output"]),
        (&json!(4), &json!("again\n")),
        "{answer}"
    );
    client.leave();
    place.home.daemon();
}

#[test]
fn what_a_client_cancels_ends() {
    let place = Place::new();
    let mut client = Client::of(&place);
    client.call(1, "sandbox_create", &json!({ "name": "box" }));
    client.hear();
    client.call(2, "sandbox_exec", &json!({ "sandbox": "box", "command": "sleep 1000", "timeout": "1h" }));
    until("the command", || sleeps(&place, "box").then_some(()));
    client
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }));
    until("the end of the command", || (!sleeps(&place, "box")).then_some(()));

    let before = place.home.json(&["list"]).as_array().unwrap().len();
    client.call(3, "sandbox_verify", &json!({ "sandbox": "box", "commands": ["sleep 1000"] }));
    let running = || place.home.processes().iter().filter(|(_, name)| name.contains("sleep")).count();
    until("the check", || (running() > 0).then_some(()));
    client
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } }));
    until("the end of the check", || (running() == 0).then_some(()));
    until("the end of its copy", || {
        (place.home.json(&["list"]).as_array().unwrap().len() == before).then_some(())
    });

    client.call(4, "sandbox_run", &json!({ "command": "sleep 1000", "timeout": "1h" }));
    until("the throwaway", || (running() > 0).then_some(()));
    drop(client.stdin.take());
    until("the end of the throwaway", || (running() == 0).then_some(()));
    client.child.wait().unwrap();
}
