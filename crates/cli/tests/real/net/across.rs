//! From one sandbox to another: by name, of the same workspace, and only if it was declared.

use std::path::Path;

use super::port::serve;
use super::{INSIDE, record};
use crate::home::{Home, finish};
use crate::wait::until;

fn create(home: &Home, name: &str, folder: &Path, net: &str) {
    let made = home.command(&["create", "--name", name, "--net", net]).current_dir(folder).spawn().unwrap();
    let made = finish(made, b"");
    assert_eq!(made.code, 0, "{made}");
}

/// A folder that is a workspace.
fn workspace(home: &Home, name: &str) -> std::path::PathBuf {
    let folder = home.yard().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(&folder).status().unwrap();
    assert!(made.success());
    folder
}

#[test]
fn sandboxes_of_one_workspace_reach_each_other_only_if_declared() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let (one, two) = (workspace(&home, "one"), workspace(&home, "two"));
    create(&home, "b", &one, "allow:x.test");
    create(&home, "a", &one, "allow:b.zeno:3000,none.zeno");
    create(&home, "c", &one, "open");
    create(&home, "d", &two, "allow:b.zeno");
    home.create("e", &["--net", "allow:b.zeno"]);
    serve(&home, "b", 3000);
    serve(&home, "b", 3001);
    let tries = |from: &str, line: &str| {
        let said = home.ok(&["exec", from, "--", "python3", "-c", INSIDE, line]);
        said.split_once(" -> ").unwrap().1.trim_end().to_owned()
    };
    until("the other to listen", || (tries("a", "tcp b.zeno 3000 hello") == "b:hello").then_some(()));
    for (from, line, expected) in [
        (
            "a",
            "tcp b.zeno 3000 GET / HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n",
            "b:GET / HTTP/1.0|Host: localhost||",
        ),
        ("a", "tcp zeno.proxy 3128 CONNECT b.zeno:3001 HTTP/1.1\\r\\n\\r\\n", FORBIDDEN),
        ("a", "tcp b.zeno 3001 hello", RESET),
        ("a", "tcp none.zeno 3000 hello", RESET),
        // Not the other way round, not because everything public is open, not from elsewhere.
        ("b", "tcp a.zeno 3000 hello", NO_NAME),
        ("c", "tcp b.zeno 3000 hello", NO_NAME),
        ("d", "tcp b.zeno 3000 hello", RESET),
        ("e", "tcp b.zeno 3000 hello", RESET),
    ] {
        let said = tries(from, line);
        assert!(said.starts_with(expected), "{from}: {line}: {said}");
    }
    let proxied = tries("a", "tcp zeno.proxy 3128 GET http://b.zeno:3000/x HTTP/1.1\\r\\n\\r\\n");
    assert!(proxied.starts_with("b:GET /x HTTP/1.1|Host: b.zeno:3000"), "{proxied}");
    home.ok(&["stop", "b"]);
    assert_eq!(tries("a", "tcp b.zeno 3000 hello"), RESET);
    let mut shown = String::new();
    for from in ["a", "b", "c", "d", "e"] {
        let mut lines: Vec<String> = record(&home, &[from]).lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        shown += &format!("{from}\n{}\n", lines.join("\n"));
    }
    insta::assert_snapshot!(shown, @"
    a
    allow tcp b.zeno 3000: b.zeno:3000
    deny tcp b.zeno 3000: cannot reach a port of sandbox `b`: it is stopped
    deny tcp b.zeno 3001: nothing allows it
    deny tcp none.zeno 3000: there is no sandbox `none`
    b
    deny dns a.zeno null: nothing allows it
    c
    deny dns b.zeno null: nothing allows it
    d
    deny tcp b.zeno 3000: `b` is no sandbox of the same workspace
    e
    deny tcp b.zeno 3000: `b` is no sandbox of the same workspace
    ");
}

/// Methods and paths hold here as they do outside.
#[test]
fn what_is_asked_of_another_sandbox_can_be_looked_at() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let one = workspace(&home, "one");
    create(&home, "b", &one, "none");
    create(&home, "a", &one, "allow:GET b.zeno:8000/ok/*");
    home.ok(&[
        "exec",
        "b",
        "--",
        "sh",
        "-c",
        "mkdir -p /tmp/ok && echo fine > /tmp/ok/x && echo no > /tmp/secret",
    ]);
    home.detach("b", "cd /tmp && exec python3 -m http.server --bind 127.0.0.1 8000");
    let curl = |words: &str| home.exec("a", &format!("curl -sS --max-time 20 {words} 2>&1")).out();
    until("the other to listen", || (curl("http://b.zeno:8000/ok/x") == "fine\n").then_some(()));
    assert_eq!(curl("http://b.zeno:8000/secret"), "zeno: nothing allows GET of this path\n");
    assert_eq!(curl("-X PUT http://b.zeno:8000/ok/x"), "zeno: nothing allows PUT of this path\n");
    assert_eq!(curl("-x http://zeno.proxy:3128 http://b.zeno:8000/ok/x"), "fine\n");
    let shown = record(&home, &["a"]);
    assert!(shown.contains("allow http b.zeno 8000: GET b.zeno:8000/ok/*"), "{shown}");
    assert!(shown.contains("deny http b.zeno 8000: nothing allows PUT of this path"), "{shown}");
}

const RESET: &str = "ConnectionResetError";
const NO_NAME: &str = "gaierror";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden";
