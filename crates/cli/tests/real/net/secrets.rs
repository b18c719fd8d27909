//! Ways by which the value of a secret could enter all the same.

use std::process::Command;

use super::inspect::{Hosts, is_in_files};
use crate::home::{Home, Ran, finish};
use crate::wait::until;

const VALUE: &str = "re4l-0123456789abcdef0123456789abcdef";
const NET: &str = "allow:public.test:8443";

fn zeno(home: &Home, words: &[&str]) -> Ran {
    let mut command: Command = home.command(words);
    let url = format!("postgres://me:{VALUE}@db/x");
    command.env("TOKEN", VALUE).env("SAME", VALUE).env("DATABASE_URL", url);
    let ran = finish(command.spawn().unwrap(), b"");
    home.daemon();
    ran
}

#[test]
fn by_variables_that_hold_it_by_answers_and_by_forks() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    let secret = ["--no-workspace", "--net", NET, "--secret", "TOKEN@public.test"];
    let look = ["--", "sh", "-c", "env; cat /proc/*/environ | tr '\\0' '\\n'"];
    let first = zeno(&home, &[&["run"], &secret[..], &["-e", &format!("MORE=x{VALUE}")], &look].concat());
    assert!(first.code == 0 && first.out().contains("DATABASE_URL=postgres://me:"), "{first}");
    assert!(first.out().contains("MORE=x") && !first.out().contains("re4l-"), "{first}");
    let made = zeno(&home, &[&["create", "--name", "web"], &secret[..]].concat());
    assert_eq!(made.code, 0, "{made}");
    let more = format!("MORE=x{VALUE}");
    let later = zeno(&home, &[&["exec", "-e", &more, "web"], &look[..]].concat());
    assert!(later.out().contains("SAME=") && later.out().contains("MORE=x"), "{later}");
    assert!(!later.out().contains("re4l-"), "{later}");

    // What a host says of it is said with what stands for it.
    let curl = |name: &str, words: &str| {
        let address = "https://public.test:8443/v1/echo?k=$TOKEN";
        home.exec(name, &format!("curl -sS --max-time 20 -D - {words} \"{address}\" 2>&1"))
    };
    let echo = curl("web", "-H \"Authorization: Bearer $TOKEN\"");
    let arrived = || hosts.seen().matches(&format!("Bearer {VALUE}")).count();
    until("the value to arrive", || (arrived() == 1).then_some(()));
    assert!(echo.out().contains("x-echo: Bearer ") && echo.out().contains("location: /v1/echo?k="), "{echo}");
    assert!(!echo.out().contains("re4l-"), "{echo}");
    let trace = curl("web", "-X TRACE -H \"Authorization: Bearer $TOKEN\"");
    assert!(trace.out().contains("TRACE is answered with the request itself"), "{trace}");
    assert!(!hosts.seen().contains("\"TRACE\""), "{}", hosts.seen());

    // What is made of it has the same.
    home.ok(&["fork", "web", "--name", "twin"]);
    home.ok(&["snapshot", "web", "--name", "then"]);
    home.ok(&["restore", "then", "--name", "again"]);
    for name in ["twin", "again"] {
        let ran = curl(name, "-H \"Authorization: Bearer $TOKEN\"");
        assert!(ran.out().contains(" 200") && ran.out().contains("x-echo: Bearer "), "{name}: {ran}");
    }
    until("the value to arrive from each", || (arrived() == 3).then_some(()));
    assert_eq!(is_in_files(&home.path(), &[VALUE]), None);
    hosts.end(&home);
}

#[test]
fn a_policy_brings_no_secrets_of_its_own() {
    let home = Home::new();
    home.create("first", &[]);
    let policy = r#"{"gateway":{"otherwise":"deny","rules":[],"secrets":[{"name":"X","placeholder":"","hosts":["a.example"]}]}}"#;
    let body = format!(r#"{{"net":{policy}}}"#);
    let answer = home.ask("POST", "/v1/sandboxes", body.as_bytes());
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 400 && said.contains("cannot bring secrets of its own"), "{said}");
}
