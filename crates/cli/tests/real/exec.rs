//! Commands in a sandbox that stays: terminals, signals, detaching, logs, and what must not pile up.

use std::fs;
use std::io::{BufRead, BufReader};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::home::{Home, is_root};
use crate::terminal::Screen;
use crate::traces::below_launcher;
use crate::wait::{end, until};

#[test]
fn a_terminal_is_a_terminal() {
    let home = Home::new();
    home.create("tty", &[]);
    let mut screen = Screen::open(&home, &["exec", "tty", "--", "sh", "-c", "tty; stty size; exec sh"]);
    screen.see("24 80");
    assert!(screen.shown.starts_with("/dev/pts/"), "{}", screen.shown);
    screen.resize(50, 132);
    // The news and the keys travel one after the other, but the program sees a signal when it likes.
    screen.type_in(b"until [ \"$(stty size)\" = '50 132' ]; do sleep 0.1; done; echo re''sized\n");
    screen.see("resized");
    screen.type_in(b"sleep 1000; echo inter''rupted $?\n");
    until("sleep to run", || {
        home.exec("tty", "ps -eo args").out().lines().any(|line| line == "sleep 1000").then_some(())
    });
    screen.type_in(b"\x03");
    screen.type_in(b"echo still he''re\n");
    screen.see("still here");
    // A key that says the end of input, at which a shell leaves with its last command's code.
    screen.type_in(b"(exit 7)\n\x04");
    assert_eq!(screen.end(), 7);
}

#[test]
fn a_shell_is_the_callers_own() {
    let home = Home::new();
    home.create("box", &[]);
    let mut screen = Screen::open(&home, &["shell", "box"]);
    screen.type_in(b"echo shell=$0 at $(pwd); exit 3\n");
    screen.see("at /");
    screen.see("shell=");
    assert_eq!(screen.end(), 3);
}

#[test]
fn signals_to_zeno_reach_the_command() {
    let home = Home::new();
    home.create("box", &[]);
    let line = "trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = home.command(&["exec", "box", "--", "sh", "-c", line]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(stdout.next().unwrap(), "ready");
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(stdout.next().unwrap(), "term");
    assert_eq!(end(&mut child).code(), Some(9));
}

#[test]
fn a_detached_command_is_listed_joined_and_killed() {
    let home = Home::new();
    home.create("box", &[]);
    let number = home.detach("box", "while :; do echo beat; sleep 0.05; done");
    assert_eq!(number, "1");
    let mut follower = home.command(&["logs", "-f", "box"]).spawn().unwrap();
    let mut attached = home.command(&["attach", "box", &number]).spawn().unwrap();
    for child in [&mut follower, &mut attached] {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!((0..3).all(|_| lines.next().unwrap() == "beat"));
        thread::spawn(move || lines.count());
    }
    let execs = home.json(&["execs", "box"]);
    assert_eq!(execs[0]["id"], 1);
    assert_eq!(execs[0]["outcome"], json!(null));

    home.ok(&["kill", "box", &number]);
    assert_eq!(end(&mut attached).code(), Some(128 + 15));
    let outcome = home.json(&["execs", "box"])[0]["outcome"].clone();
    assert_eq!(outcome, json!({ "kind": "signaled", "signal": 15 }));
    assert_eq!(home.zeno(&["attach", "box", &number]).code, 128 + 15, "what ended tells how");

    home.ok(&["destroy", "box"]);
    assert_eq!(end(&mut follower).code(), Some(0), "a log ends with its sandbox");
}

#[test]
fn logs_keep_the_streams_of_each_command() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo one; echo two >&2");
    home.exec("box", "printf '\\377'");
    let logs = home.zeno(&["logs", "box"]);
    assert_eq!((logs.stdout.as_slice(), logs.stderr.as_slice()), (&b"one\n\xff"[..], &b"two\n"[..]));
    assert_eq!(home.zeno(&["logs", "--exec", "2", "box"]).stdout, b"\xff");
}

#[test]
fn a_flood_ends_at_its_limit() {
    let home = Home::new();
    home.create("box", &[]);
    let ran = home.zeno(&["exec", "--output-limit", "1MiB", "box", "--", "sh", "-c", "yes & yes"]);
    assert_eq!(ran.code, 128 + 25, "{}", ran.err());
    assert_eq!(ran.err(), "zeno: the command wrote more than its limit\n");
    assert!(ran.stdout.len() >= 1 << 20 && ran.stdout.len() < 8 << 20, "{}", ran.stdout.len());
    assert_eq!(home.exec("box", "ps -eo args | grep -c '^yes'").out(), "0\n");
}

#[test]
fn no_zombie_stays() {
    let home = Home::new();
    home.create("box", &[]);
    // Orphans by the dozen, each ending after its parent.
    home.exec("box", "for i in $(seq 50); do (sh -c 'sleep 0.1 &' &); done");
    until("the orphans to end", || {
        (home.exec("box", "ps -eo args | grep -c '[s]leep 0.1'").out() == "0\n").then_some(())
    });
    assert_eq!(home.exec("box", "ps -eo stat | grep -c ^Z").out(), "0\n");
    assert_eq!(home.json(&["status", "box"])["processes"], 0);
}

#[test]
fn commands_at_once_do_not_mix() {
    let home = Home::new();
    home.create("box", &[]);
    thread::scope(|scope| {
        for worker in 0..8 {
            let home = &home;
            scope.spawn(move || {
                let line = format!("for i in $(seq 200); do echo {worker} $i; done; exit {worker}");
                let ran = home.exec("box", &line);
                let expected: String = (1..=200).map(|i| format!("{worker} {i}\n")).collect();
                assert_eq!((ran.code, ran.out()), (worker, expected));
            });
        }
    });
}

#[test]
fn a_thousand_commands_leak_no_descriptor() {
    let home = Home::new();
    home.create("box", &[]);
    let daemon = home.daemon().unwrap();
    // The next sandbox and the next process for one are made ahead, and the daemon has descriptors of theirs, too.
    until("two made ahead", || (below_launcher(daemon, "zeno-spare").len() == 2).then_some(()));
    let [init] = below_launcher(daemon, "zeno-init")[..] else { panic!("one sandbox has one init") };
    // Init shows its descriptors to root only.
    let counted: Vec<i32> = if is_root() { vec![daemon, init] } else { vec![daemon] };
    let count = |pid: &i32| fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let mut connection = home.http();
    let mut run = |times: usize| {
        for _ in 0..times {
            let answer = connection.ask("POST", "/v1/sandboxes/box/exec", &[], br#"{"argv":["true"]}"#);
            let outcome = answer.lines().last().unwrap()["outcome"].clone();
            assert_eq!(outcome, json!({ "kind": "exited", "code": 0 }));
        }
    };
    run(10);
    let before: Vec<usize> = counted.iter().map(count).collect();
    run(1000);
    until("the descriptors to be those of before", || {
        let after: Vec<usize> = counted.iter().map(count).collect();
        after.iter().zip(&before).all(|(after, before)| after <= before).then_some(())
    });
}

#[test]
fn a_program_that_is_not_there_is_told_alike_whoever_watches() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo > /var/tmp/data");
    for (program, code) in [("no-such-program", 127), ("/var/tmp/data", 126)] {
        let watched = home.zeno(&["exec", "box", "--", program]);
        assert_eq!(watched.code, code, "{watched}");
        assert_eq!(home.zeno(&["exec", "-d", "box", "--", program]), watched);
    }
    let watched = home.zeno(&["run", "--no-workspace", "--", "no-such-program"]);
    assert_eq!(home.zeno(&["run", "-d", "--no-workspace", "--", "no-such-program"]), watched);
    assert_eq!(home.ok(&["list"]).lines().count(), 2, "nothing stays of a sandbox nobody was told of");
}
