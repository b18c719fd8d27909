//! Who may not come in, and what is not MCP.

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::Place;
use crate::http::{Connection, Response};
use crate::wait::PATIENCE;

impl Place {
    fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let address = self.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let always =
            [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        Connection::new(stream).ask("POST", "/mcp", &[&always[..], headers].concat(), body)
    }

    /// What `zeno mcp` says to these bytes, line by line.
    fn said_to(&self, input: &[u8]) -> Vec<Value> {
        let mut child = self.home.command(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn initialize(id: u32) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }).to_string()
}

#[test]
fn the_door_over_http() {
    let place = Place::new();
    let bearer = format!("Bearer {}", place.token);
    let authorized = ("authorization", bearer.as_str());
    let initialize = initialize(1);
    let status = |headers: &[(&str, &str)]| place.post(headers, initialize.as_bytes()).status;

    assert_eq!(status(&[authorized]), 200);
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(status(&[authorized, ("host", "evil.example")]), 403);
    assert_eq!(status(&[authorized, ("host", "127.0.0.1.evil.example")]), 403);
    assert_eq!(status(&[authorized, ("origin", "https://evil.example")]), 403);
    assert_eq!(status(&[authorized, ("origin", "null")]), 403);
    // A page of this machine, but not of the daemon's own.
    assert_eq!(status(&[authorized, ("origin", "http://localhost:3")]), 403);
    let own = place.url.strip_suffix("/mcp").unwrap();
    assert_eq!(status(&[authorized, ("origin", own)]), 200);

    let giant = vec![b' '; (4 << 20) + 1];
    assert_eq!(place.post(&[authorized], &giant).status, 413);
    for garbage in [&b""[..], b"{", b"[]", b"null", b"\xff\xfe", b"{\"jsonrpc\":\"2.0\"}"] {
        let status = place.post(&[authorized], garbage).status;
        assert!((400..500).contains(&status), "{status} {garbage:?}");
    }
    assert_eq!(place.home.ask("POST", "/mcp", initialize.as_bytes()).status, 404, "not over the Unix socket");
    assert_eq!(status(&[authorized]), 200, "the daemon lives");
}

#[test]
fn garbage_on_standard_input_is_answered_and_the_rest_works() {
    let place = Place::new();
    let list = json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }).to_string();
    let unknown = json!({ "jsonrpc": "2.0", "id": 3, "method": "no/such/thing" }).to_string();
    let nobody =
        json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": { "name": "no_such_tool" } });
    let lines = [
        b"what?\n\n{\"jsonrpc\":\n\xff\xfe\n".to_vec(),
        vec![b'x'; (8 << 20) + 10],
        format!("\n{}\n{list}\n{unknown}\n{nobody}\n", initialize(1)).into_bytes(),
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}}\n"
            .to_vec(),
    ];
    let said = place.said_to(&lines.concat());
    let code = |id: Value| {
        let answers: Vec<_> = said.iter().filter(|answer| answer["id"] == id).collect();
        answers.iter().map(|answer| answer["error"]["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(code(Value::Null), [json!(-32700), json!(-32700), json!(-32700), json!(-32600)], "{said:?}");
    assert_eq!(code(json!(3)), [json!(-32601)], "{said:?}");
    assert_eq!(code(json!(4)), [json!(-32602)], "{said:?}");
    assert_eq!(code(json!("list")), [Value::Null], "{said:?}");
    let answer = |id: Value| said.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answer(json!(1))["result"]["protocolVersion"], "2025-11-25");
    assert!(answer(json!("list"))["result"]["tools"].as_array().unwrap().len() > 15);
}

#[test]
fn who_cannot_ask_a_person_promotes_nothing() {
    let place = Place::new();
    let call = |id: u32, name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    place.home.create_in("box", &place.yard.path);
    place.home.exec("box", "rm readme");
    let promote = call(2, "sandbox_promote", json!({ "sandbox": "box" }));
    let said = place.said_to(format!("{}\n{promote}\n", initialize(1)).as_bytes());
    let refused = said.iter().find(|answer| answer["id"] == 2).unwrap();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(refused["result"]["structuredContent"]["problem"]["code"], "refused", "{refused}");
    assert!(place.yard.path.join("readme").exists());

    let input = format!("{}\n{promote}\n", initialize(1));
    let mut child = place.home.command(&["mcp", "--allow-promote"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Promoted."), "{text}");
    assert!(!place.yard.path.join("readme").exists());
}
