//! Answers in place of the real host: by the gateway itself, or by a service of this machine. Nobody outside is asked.

use serde_json::{Value, json};

use super::{in_world, read_line, record};
use crate::home::{Home, finish};
use crate::wait::until;

/// Makes a sandbox with rules that only the API can say.
fn create(home: &Home, name: &str, rules: &Value) {
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    let env = [variable("PATH", "/usr/local/bin:/usr/bin:/bin"), variable("HOME", "/tmp")];
    let request = json!({
        "name": name, "workspace": "none", "net": { "gateway": { "rules": rules } },
        "context": { "env": env, "cwd": "/tmp" },
    });
    let made = home.ask("POST", "/v1/sandboxes", request.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
}

#[test]
fn a_name_that_does_not_exist_outside_is_answered() {
    in_world(|home, world| {
        let headers = json!([{ "name": "x-mock", "value": "yes" }, { "name": "content-type", "value": "application/json" }]);
        let fixed = json!({ "fixed": { "status": 201, "headers": headers, "body": "{\"made\":true}" } });
        let part = json!({ "fixed": { "status": 404 } });
        create(
            home,
            "web",
            &json!([
                { "to": "nowhere.test", "answer": fixed },
                { "to": "part.test", "inspect": { "path": "/v1/*" }, "answer": part },
                { "to": "part.test" },
                { "to": "sink.test", "answer": { "service": "127.0.0.1:80" } },
                { "to": "mail.test", "ports": [{ "first": 25, "last": 25 }], "answer": { "service": "127.0.0.1:80" } },
                { "to": "looked.test", "inspect": {}, "answer": { "service": "127.0.0.1:80" } },
            ]),
        );
        let curl = |words: &str| {
            let format = "-w ' %{http_code} %header{x-mock}'";
            home.exec("web", &format!("curl -sS --max-time 20 {format} {words} 2>&1")).out()
        };
        assert_eq!(curl("http://nowhere.test/x"), "{\"made\":true} 201 yes");
        assert_eq!(curl("https://nowhere.test:8443/y -d sent=1"), "{\"made\":true} 201 yes");
        assert_eq!(curl("--http1.1 https://nowhere.test/ -T /etc/passwd"), "{\"made\":true} 201 yes");
        assert_eq!(curl("-x http://zeno.proxy:3128 http://nowhere.test/"), "{\"made\":true} 201 yes");
        assert_eq!(curl("http://part.test/v1/x"), " 404 ");
        // A service of this machine is given what it is, or what was asked.
        assert_eq!(curl("http://sink.test/"), "127.0.0.1:80 200 ");
        assert_eq!(curl("https://looked.test/"), "127.0.0.1:80 200 ");
        let mail = "import socket; c = socket.create_connection(('mail.test', 25)); c.sendall(b'EHLO me\\r\\n'); print(c.recv(99))";
        assert_eq!(home.ok(&["exec", "web", "--", "python3", "-c", mail]), "b'seen:EHLO me\\r\\n'\n");
        assert!(curl("http://mail.test/").ends_with(" 000 "));
        let seen = world.seen();
        let questions: Vec<&str> = seen.lines().filter(|line| line.contains("question")).collect();
        // Only the one that is answered in part could have been for somebody out there.
        assert!(questions.iter().all(|question| question.contains("part.test")), "{questions:?}");
        let shown = record(home, &["web"]);
        for line in [
            "allow tcp nowhere.test 80: nowhere.test -> 201",
            "allow http nowhere.test 8443: nowhere.test -> 201",
            "allow http part.test 80: part.test/v1/* -> 404",
            "allow tcp sink.test 80: sink.test -> 127.0.0.1:80",
            "allow http looked.test 443: looked.test+inspect -> 127.0.0.1:80",
            "deny tcp mail.test 80: nothing allows it",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let posted = until("the record", || {
            let all = home.json(&["requests", "web", "--host", "nowhere.test"]);
            let is_posted = |one: &&Value| one["http"]["method"] == "POST" && !one["end"].is_null();
            all.as_array().unwrap().iter().find(is_posted).cloned()
        });
        assert_eq!(posted["http"]["status"], 201);
        assert_eq!((&posted["http"]["request"]["size"], &posted["end"]["received"]), (&6.into(), &13.into()));
        assert!(home.ok(&["net", "web"]).contains("nowhere.test -> 201"));
    });
}

/// A connection that was answered in place of its host is cut when it would not be any more.
#[test]
fn what_answers_can_be_changed_while_it_runs() {
    in_world(|home, _world| {
        create(home, "web", &json!([{ "to": "public.test", "answer": { "service": "127.0.0.1:80" } }]));
        let script = "import socket\nc = socket.create_connection(('public.test', 80)); c.sendall(b'x'); print(c.recv(9), flush=True)\n\
                      try: print('ended', c.recv(9))\nexcept OSError as e: print(type(e).__name__)";
        let mut going = home.command(&["exec", "web", "--", "python3", "-c", script]).spawn().unwrap();
        read_line(&mut going, "b'seen:x'\n");
        home.ok(&["net", "web", "--allow", "public.test"]);
        assert_eq!(finish(going, b"").out(), "ConnectionResetError\n");
        let shown = || home.json(&["requests", "web"]).to_string();
        until("the record", || shown().contains("cut: it would go another way now").then_some(()));
    });
}
