//! Changes of what may be reached, while something is under way: each holds for it, and none is lost.

use serde_json::Value;

use super::{INSIDE, in_world, read_line};
use crate::home::{Home, finish};
use crate::wait::until;

/// Says something, waits for an answer, and then for the end.
const STAYS: &str = "import socket, sys\n\
    c = socket.create_connection((sys.argv[1], 80)); c.sendall(sys.argv[2].encode().decode('unicode_escape').encode()); c.recv(4096)\n\
    print('open', flush=True)\ntry: print('ended', c.recv(100))\nexcept OSError as e: print(type(e).__name__)";

/// How the connections of a sandbox ended that did not do so by themselves.
fn cuts(home: &Home, sandbox: &str) -> Vec<String> {
    let all = home.json(&["requests", sandbox]);
    let error = |request: &Value| request["end"]["error"].as_str().map(str::to_owned);
    all.as_array().unwrap().iter().filter_map(error).collect()
}

#[track_caller]
fn check(home: &Home, says: [&str; 2], deny: &str, expected: &str) {
    let net = "allow:public.test,www.public.test,other.test+inspect";
    home.create("web", &["--net", net]);
    let words = [&["exec", "web", "--", "python3", "-c", STAYS], &says[..]].concat();
    let mut going = home.command(&words).spawn().unwrap();
    read_line(&mut going, "open\n");
    home.ok(&["net", "web", "--deny", deny]);
    assert_eq!(finish(going, b"").out(), "ConnectionResetError\n", "{deny}");
    until("the record", || (cuts(home, "web") == [expected]).then_some(()));
    home.ok(&["destroy", "web", "--yes"]);
}

#[test]
fn a_connection_whose_requests_are_to_be_looked_at_is_cut() {
    in_world(|home, _world| {
        check(home, ["public.test", "hello"], "DELETE public.test", "cut: it would go another way now");
    });
}

#[test]
fn a_name_that_was_said_is_asked_about_again() {
    in_world(|home, _world| {
        let says = ["public.test", "GET / HTTP/1.1\\r\\nHost: www.public.test\\r\\n\\r\\n"];
        for deny in ["www.public.test", "DELETE www.public.test"] {
            check(home, says, deny, "cut: it is not allowed any more");
        }
    });
}

/// What is denied by one of several changes at once is denied afterwards.
#[test]
fn no_change_is_lost_among_others() {
    in_world(|home, _world| {
        home.create("web", &["--net", "open"]);
        for round in 0..12 {
            let names: Vec<String> = (0..6).map(|number| format!("n{number}.r{round}.test")).collect();
            std::thread::scope(|scope| {
                for name in &names {
                    scope.spawn(move || {
                        let body = format!(r#"{{"deny":["{name}"]}}"#);
                        let changed = home.ask("POST", "/v1/sandboxes/web/net", body.as_bytes());
                        assert_eq!(changed.status, 200, "{}", String::from_utf8_lossy(&changed.body));
                    });
                }
            });
            let lines: Vec<String> = names.iter().map(|name| format!("name {name} 0")).collect();
            let words = [
                &["exec", "web", "--", "python3", "-c", INSIDE],
                &lines.iter().map(String::as_str).collect::<Vec<_>>()[..],
            ];
            home.ok(&words.concat());
            let denied =
                home.json(&["requests", "web", "--denied", "--host", &format!("r{round}.test")]).to_string();
            for name in &names {
                assert!(denied.contains(&format!("!{name}")), "{name} was not denied: {denied}");
            }
        }
    });
}

/// Also of a sandbox that was made a moment ago.
#[test]
fn a_change_of_a_sandbox_that_is_just_made_is_not_lost() {
    in_world(|home, _world| {
        for round in 0..12 {
            let name = format!("web{round}");
            home.create(&name, &["--net", "allow:public.test"]);
            let body = br#"{"deny":["public.test"]}"#;
            assert_eq!(home.ask("POST", &format!("/v1/sandboxes/{name}/net"), body).status, 200);
            let said = home.ok(&["exec", &name, "--", "python3", "-c", INSIDE, "name public.test 0"]);
            assert_eq!(said, "name public.test 0 -> gaierror\n", "{name}");
            home.ok(&["destroy", &name, "--yes"]);
        }
    });
}

/// Whoever is outside may keep its half open for ever.
#[test]
fn a_connection_ends_with_its_sandbox() {
    in_world(|home, world| {
        home.create("web", &["--net", "allow:public.test:7000"]);
        let script = "import socket, time\nc = socket.create_connection((\\\"public.test\\\", 7000)); c.sendall(b\\\"x\\\"); time.sleep(3600)";
        home.detach("web", &format!("exec python3 -c \"{script}\""));
        until("it to be open", || world.seen().contains("stays").then_some(()));
        home.ok(&["destroy", "web", "--yes"]);
        until("it to be closed outside", || world.seen().contains("is gone").then_some(()));
        let shown = || home.json(&["requests", "--host", "public.test"]).to_string();
        until("the record", || shown().contains("cut: its sandbox ended").then_some(()));
    });
}
