//! The record: who follows it hears of everything, what began has an end, and long bodies are cut.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::inspect::Hosts;
use super::{INSIDE, in_world, record};
use crate::home::Home;
use crate::wait::{end, until};

const STREAMING: &str = include_str!("streaming.py");
const JAVA: &str = include_str!("Client.java");

#[test]
fn a_follower_hears_of_later_denials_and_of_ends() {
    in_world(|home, _world| {
        home.create("web", &["--net", "allow:public.test:80"]);
        let attempt = |line: &str| home.ok(&["exec", "web", "--", "python3", "-c", INSIDE, line]);
        let mut follower = home.command(&["requests", "-f", "web"]).spawn().unwrap();
        let heard = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(follower.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn({
            let heard = Arc::clone(&heard);
            move || lines.map_while(Result::ok).for_each(|line| *heard.lock().unwrap() += &(line + "\n"))
        });
        let heard = || heard.lock().unwrap().clone();
        until("the follower to hear anything", || {
            attempt("tcp 93.184.216.35 80");
            heard().contains("93.184.216.35").then_some(())
        });
        attempt("tcp public.test 80 GET / HTTP/1.1\\r\\nHost: public.test\\r\\n\\r\\n");
        attempt("tcp public.test 80 GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n");
        let of = |verdict: &str, what: &str| {
            let is_it =
                |line: &&str| [verdict, "public.test:80", what].iter().all(|part| line.contains(part));
            heard().lines().filter(is_it).count()
        };
        until("the follower to hear of the end and of the denial", || {
            (of("allow  tcp", " in, ") == 1 && of("deny   tcp", "says `other.test`") == 1).then_some(())
        });
        // Each of both began, too, and nothing is told twice.
        assert_eq!((of("allow  tcp", "python3["), of("deny   tcp", "")), (3, 1), "{}", heard());
        assert!(heard().contains("allow  dns   public.test"), "{}", heard());

        // Who comes later reads what was, first, and is told as a browser wants to be.
        let accept = [("accept", "text/event-stream")];
        let mut stream = home.http();
        let response = stream.open("GET", "/v1/requests?after=0&denied", &accept, b"");
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let mut events = String::new();
        while !events.contains("says `other.test`") {
            events += &String::from_utf8(stream.piece(&response).unwrap()).unwrap();
        }
        assert!(events.contains("event: request\n") && events.contains("id: 1\n"), "{events}");
        assert!(!events.contains("\"verdict\":\"allow\""), "{events}");

        follower.kill().unwrap();
        end(&mut follower);
        reader.join().unwrap();
    });
}

/// Nobody hears of one that exists only as a question, but the record.
#[test]
fn questions_that_go_outside_are_on_record() {
    in_world(|home, world| {
        home.create("web", &["--net", "allow:*.public.test"]);
        for name in ["www.public.test", "0123.public.test", "www.public.test", "4567.public.test"] {
            home.exec("web", &format!("getent ahosts {name}"));
        }
        assert!(world.seen().contains("0123.public.test"), "{}", world.seen());
        let all = home.json(&["requests", "web"]);
        let line = |request: &Value| {
            format!("{} {} {}", request["verdict"], request["name"], request["end"]["error"])
        };
        let mut lines: Vec<String> = all.as_array().unwrap().iter().map(line).collect();
        lines.dedup();
        assert_eq!(
            lines,
            [
                r#""allow" "www.public.test" null"#,
                r#""allow" "0123.public.test" "the name leads nowhere""#,
                r#""allow" "4567.public.test" "the name leads nowhere""#,
            ]
        );
        assert!(record(home, &[]).contains("allow dns www.public.test null: *.public.test\n"));
    });
}

/// A connection that became another protocol, and one of a daemon that is killed.
#[test]
fn what_began_has_an_end() {
    let home = Home::new();
    let mut hosts = Hosts::new(&home);
    home.create("web", &["--net", "allow:public.test:8443+inspect,public.test:80"]);
    let open = |script: &str, port: &str| {
        let words = ["exec", "web", "--", "python3", "-c", script, "public.test", port];
        let mut going = home.command(&words).spawn().unwrap();
        let mut first = [0; 4];
        going.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        assert_eq!(&first, b"open");
        going
    };
    let ended = |protocol: &str| {
        let all = home.json(&["requests", "web", "--host", "public.test"]);
        let last = all.as_array().unwrap().iter().rfind(|one| one["protocol"] == protocol).unwrap().clone();
        (!last["end"].is_null()).then_some(last)
    };
    let going = open(TUNNEL, "8443");
    assert_eq!(ended("http"), None);
    home.ok(&["net", "web", "--deny", "public.test:8443"]);
    let cut = until("the end of the tunnel", || ended("http"));
    let why = "cut: it is not allowed any more";
    assert_eq!((&cut["end"]["error"], &cut["verdict"]), (&why.into(), &"allow".into()), "{cut}");
    assert_eq!((&cut["end"]["sent"], &cut["end"]["received"]), (&11.into(), &11.into()), "{cut}");
    assert_eq!(crate::home::finish(going, b"").code, 0);

    let going = open(PLAIN, "80");
    assert_eq!(ended("tcp"), None);
    home.crash();
    hosts.world.start_again(&home);
    let lost = until("the end of the connection", || ended("tcp"));
    assert_eq!(lost["end"]["error"], "the daemon ended before it did", "{lost}");
    drop(crate::home::finish(going, b""));
    hosts.end(&home);
}

const TUNNEL: &str = r#"
import socket, ssl, sys
host, port = sys.argv[1], int(sys.argv[2])
stream = ssl.create_default_context().wrap_socket(socket.create_connection((host, port), timeout=50), server_hostname=host)
stream.sendall(f"GET /v1/socket HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
head = b""
while not head.endswith(b"\r\n\r\n"):
    head += stream.recv(1)
stream.sendall(b"eleven byte")
echo = b""
while len(echo) < 11:
    echo += stream.recv(11)
print("open", flush=True)
try: stream.recv(1)
except OSError: pass
"#;

const PLAIN: &str = r#"
import socket, sys
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=50)
stream.sendall(b"hello")
stream.recv(100)
print("open", flush=True)
try: stream.recv(1)
except OSError: pass
"#;

/// Both ways: the first piece is there before the last is sent. Of what is long, the record has the beginning.
#[test]
fn bodies_pass_piece_by_piece_and_are_cut_on_record() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    home.create("web", &["--net", "allow:public.test:8443+inspect"]);
    let ran = home.zeno(&["exec", "web", "--", "python3", "-c", STREAMING]);
    assert_eq!(ran.out(), "b'first\\n' b'last\\n'\n200\n", "{ran}");
    let of = |path: &str| {
        until("the end of a request", || {
            let all = home.json(&["requests", "web"]);
            let is_it = |one: &&Value| one["http"]["path"] == path && !one["end"].is_null();
            all.as_array().unwrap().iter().find(is_it).cloned()
        })
    };
    let (upload, stream) = (of("/v1/upload"), of("/v1/stream"));
    let body = &upload["http"]["request"];
    assert_eq!(
        (&body["size"], &body["is_cut"], &body["text"]),
        (&200_010.into(), &true.into(), &Value::Null)
    );
    let shown = home.json(&["requests", "show", &upload["id"].to_string()]);
    let text = shown["http"]["request"]["text"].as_str().unwrap();
    assert_eq!((text.len(), &text[..12]), (64 << 10, "aaaaaaaaaabb"));
    let shown = home.json(&["requests", "show", &stream["id"].to_string()]);
    assert_eq!(shown["http"]["response"]["text"], "first\nlast\n");
    assert_eq!(shown["http"]["response"]["is_cut"], Value::Null);
    let shown = home.ok(&["requests", "show", &upload["id"].to_string()]);
    assert!(shown.contains("(the beginning of 200010 bytes)"), "{shown}");
    hosts.end(&home);
}

/// Every Java there is, with nothing said to it.
#[test]
fn java_trusts_whoever_signs_inside() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    std::fs::write(home.yard().join("Client.java"), JAVA).unwrap();
    home.create("web", &["--net", "allow:public.test:8443+inspect"]);
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().filter_map(Result::ok);
    let installed = installed.filter_map(|entry| entry.path().join("bin/java").canonicalize().ok());
    let installed: BTreeSet<String> = installed.map(|java| java.display().to_string()).collect();
    for java in std::iter::once("java".to_owned()).chain(installed) {
        let file = home.yard().join("Client.java").display().to_string();
        let line = format!("{java} -XX:TieredStopAtLevel=1 {file} https://public.test:8443/v1/java");
        let ran = home.exec("web", &line);
        assert!(ran.code == 0 && ran.out().contains("\"path\":\"/v1/java\""), "{line}: {ran}");
    }
    assert!(!home.json(&["diff", "web"]).to_string().contains("cacerts"));
    hosts.end(&home);
}

#[test]
fn what_was_asked_for_by_address_is_found_by_it() {
    in_world(|home, _world| {
        super::attempts(
            home,
            "open",
            &["tcp public.test 80 x", "tcp 93.184.216.35 443 x", "tcp 2606:2800:220::1 80 x"],
        );
        assert_eq!(record(home, &["--host", "93.184.216.35"]).lines().count(), 1);
        assert_eq!(record(home, &["--host", "2606:2800:220:0:0::1"]).lines().count(), 1);
        // Where a name led to, as well.
        assert!(record(home, &["--host", "93.184.216.34"]).contains("allow tcp public.test 80"));
    });
}
