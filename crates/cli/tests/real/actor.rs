//! Who asks, and what nobody but a person can say.

use std::fs;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::home::{Home, finish};
use crate::http::Connection;
use crate::terminal::Screen;
use crate::wait::{PATIENCE, end, until};

#[test]
fn a_person_sits_at_a_terminal_unless_it_is_said_otherwise() {
    let home = Home::new();
    let create = |name: &str, variables: &[(&str, &str)], options: &[&str]| {
        let arguments = [&["create", "--no-workspace", "--json", "--name", name], options].concat();
        let made = finish(home.command(&arguments).envs(variables.iter().copied()).spawn().unwrap(), b"");
        home.daemon();
        made
    };
    let actor = |name: &str, variables: &[(&str, &str)], options: &[&str]| {
        let made = create(name, variables, options);
        let record: Value =
            serde_json::from_str(&made.out()).unwrap_or_else(|error| panic!("{error}: {made}"));
        record["actor"].as_str().unwrap().to_owned()
    };
    assert_eq!(actor("a", &[], &[]), "agt");
    assert_eq!(actor("b", &[("CI", "true")], &[]), "atm");
    assert_eq!(actor("c", &[("CI", "false")], &[]), "agt");
    assert_eq!(actor("d", &[("CI", "true"), ("ZENO_ACTOR", "adm")], &[]), "adm");
    assert_eq!(actor("e", &[("ZENO_ACTOR", "adm")], &["--actor", "atm"]), "atm");
    assert_eq!(create("f", &[("ZENO_ACTOR", "root")], &[]).code, 2);
    let screen = Screen::open(&home, &["create", "--no-workspace", "--name", "seen"]);
    assert_eq!(screen.end(), 0);
    assert_eq!(home.json(&["get", "seen"])["actor"], "adm");
    // Whoever says nothing over HTTP is a program.
    let made = home.ask("POST", "/v1/sandboxes", br#"{"workspace":"none"}"#).json();
    assert_eq!(made["actor"], "agt", "{made}");
}

#[test]
fn that_a_person_agreed_is_not_taken_over_tcp() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut daemon = home.command(&["daemon", "run", "--listen", &free.to_string()]).spawn().unwrap();
    let token = || fs::read_to_string(home.path().join("token")).ok().filter(|token| !token.is_empty());
    let bearer = format!("Bearer {}", until("the token", token).trim());
    let body = json!({ "to": "production", "approved": ["production"], "actor": "adm" }).to_string();
    let path = "/v1/promotions/praaaaaaaaaaaa/advance";
    let stream = until("the door", || TcpStream::connect(free).ok());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let refused = Connection::new(stream).ask("POST", path, &[("authorization", &bearer)], body.as_bytes());
    assert_eq!((refused.status, refused.json()["code"].clone()), (403, json!("forbidden")));
    assert!(refused.json()["detail"].as_str().unwrap().contains("a person agreed to `production`"));
    // Over the Unix socket it is heard, and there is no such promotion.
    assert_eq!(home.ask("POST", path, body.as_bytes()).status, 404);
    home.ok(&["daemon", "stop"]);
    assert_eq!(end(&mut daemon).code(), Some(0));
}
