//! A terminal that is left while its command goes on, and joined again.

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::Screen;
use crate::wait::until;

const LEAVE: &[u8] = b"\x10\x11";

#[track_caller]
fn outcome(home: &Home, id: u32) -> Value {
    let execs = home.json(&["execs", "box"]);
    let exec = execs.as_array().unwrap().iter().find(|exec| exec["id"] == id);
    exec.unwrap_or_else(|| panic!("{execs}"))["outcome"].clone()
}

/// The number of the one command that still runs; those that look at what it did have numbers of their own.
#[track_caller]
fn running(home: &Home) -> u64 {
    let execs = home.json(&["execs", "box"]);
    let mut running = execs.as_array().unwrap().iter().filter(|exec| exec["outcome"].is_null());
    let exec = running.next().unwrap_or_else(|| panic!("{execs}"));
    assert!(running.next().is_none(), "{execs}");
    exec["id"].as_u64().unwrap()
}

#[test]
fn a_shell_that_is_left_goes_on_and_is_joined_where_it_was() {
    let home = Home::new();
    home.create("box", &[]);
    let mut first = Screen::open(&home, &["shell", "box"]);
    first.type_in(b"kept=41; echo rea''dy\n");
    first.see("ready");
    assert!(!first.echoes());
    // What is typed right before is not lost.
    first.type_in(b"touch /tmp/typed-before\n");
    first.type_in(LEAVE);
    first.see("left running: 1 (zeno attach box 1, zeno kill box 1)");
    assert_eq!(first.wait(), 0);
    assert!(first.echoes(), "the terminal is given back");
    assert_eq!(outcome(&home, 1), json!(null));
    until("what was typed", || (home.exec("box", "test -e /tmp/typed-before").code == 0).then_some(()));

    let mut second = Screen::sized(&home, &["attach", "box", "1"], 50, 132);
    second.type_in(b"echo $((kept + 1)) of $(stty size)\n");
    second.see("42 of 50 132");
    second.resize(30, 100);
    second.type_in(b"until [ \"$(stty size)\" = '30 100' ]; do sleep 0.1; done; echo re''sized\n");
    second.see("resized");
    second.type_in(LEAVE);
    assert_eq!(second.end(), 0);

    // The daemon that it was started through need not be there any more.
    home.crash();
    let mut third = Screen::open(&home, &["attach", "box", "1"]);
    third.type_in(b"exit $((kept - 34))\n");
    assert_eq!(third.end(), 7);
    assert_eq!(outcome(&home, 1), json!({ "kind": "exited", "code": 7 }));
}

#[test]
fn what_is_typed_right_before_leaving_arrives_although_nobody_takes_the_output() {
    let home = Home::new();
    home.create("box", &[]);
    // Output all the time, so that it is noticed everywhere that nobody listens before the last words are read.
    let line = "stty -echo; echo rea''dy; timeout 20 yes & cat > /tmp/typed";
    for _ in 0..10 {
        let mut screen = Screen::open(&home, &["exec", "-t", "box", "--", "sh", "-c", line]);
        screen.see("ready");
        screen.type_in(b"last words\n");
        screen.type_in(LEAVE);
        assert_eq!(screen.end(), 0);
        let typed = || home.exec("box", "grep -q 'last words' /tmp/typed && rm /tmp/typed").code == 0;
        until("what was typed", || typed().then_some(()));
        home.ok(&["kill", "box", &running(&home).to_string()]);
    }
}

#[test]
fn a_terminal_that_takes_nothing_can_be_left_all_the_same() {
    let home = Home::new();
    home.create("box", &[]);
    let mut screen = Screen::open(&home, &["exec", "-t", "box", "--", "sh", "-c", "echo rea''dy; yes"]);
    screen.see("ready");
    until("the terminal to be full", || (home.ok(&["logs", "box"]).len() > 1 << 17).then_some(()));
    screen.type_in(LEAVE);
    until("the terminal to be given back", || screen.echoes().then_some(()));
    assert_eq!(screen.end(), 0);
    home.ok(&["kill", "box", "1"]);
}

#[test]
fn the_keys_to_leave_can_be_others_or_none() {
    let home = Home::new();
    home.create("box", &[]);
    // A program that shows keys as they are, and takes every one.
    let line = "stty raw -echo; echo rea''dy; exec cat -v";
    let mut first =
        Screen::open(&home, &["exec", "-t", "--detach-keys", "none", "box", "--", "sh", "-c", line]);
    first.see("ready");
    first.type_in(LEAVE);
    first.see("^P^Q");
    // Nobody is there to close it with ctrl-d, so that it goes with its terminal.
    home.ok(&["kill", "box", "1"]);
    assert_eq!(first.end(), 128 + 15);

    let mut second =
        Screen::open(&home, &["exec", "--detach-keys", "ctrl-a,d", "box", "--", "sh", "-c", line]);
    second.see("ready");
    second.type_in(LEAVE);
    second.see("^P^Q");
    // A beginning that is none is handed on: at once with the next key, else a moment later.
    second.type_in(b"\x01x");
    second.see("^Ax");
    second.type_in(b"\x01");
    second.next("^A");
    second.next("^A");
    second.type_in(b"\x01d");
    second.see("left running: 2 (zeno attach box 2");
    assert_eq!(second.end(), 0);
    assert_eq!(outcome(&home, 2), json!(null));

    let refused = home.zeno(&["attach", "--detach-keys", "ctrl-1", "box", "2"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.err().contains("write for example ctrl-p,ctrl-q"), "{refused}");
}

#[test]
fn who_joins_has_the_screen_drawn_again() {
    let home = Home::new();
    home.create("box", &[]);
    let line = "trap 'echo dra''wn in $(stty size)' WINCH; echo rea''dy; while :; do sleep 0.05; done";
    let mut first = Screen::open(&home, &["exec", "box", "--", "sh", "-c", line]);
    first.see("ready");
    first.type_in(LEAVE);
    assert_eq!(first.end(), 0);
    // From a terminal of the same size: nothing changes in the end, and it is drawn all the same.
    let mut second = Screen::open(&home, &["attach", "box", "1"]);
    second.see("drawn in 24 80");
    second.type_in(b"\x03");
    assert_eq!(second.end(), 128 + 2);
}

#[test]
fn a_throwaway_cannot_be_left_and_a_kept_one_can() {
    let home = Home::new();
    let line = "stty raw -echo; echo rea''dy; exec cat -v";
    let mut throwaway = Screen::open(&home, &["run", "--no-workspace", "--", "sh", "-c", line]);
    throwaway.see("ready");
    throwaway.type_in(LEAVE);
    throwaway.see("^P^Q");
    throwaway.signal(Signal::TERM);
    assert_eq!(throwaway.end(), 128 + 15);

    let name = ["--no-workspace", "--keep", "--name", "box"];
    let mut kept = Screen::open(&home, &[&["run"], &name[..], &["--", "sh", "-c", line]].concat());
    kept.see("ready");
    kept.type_in(LEAVE);
    kept.see("kept: box");
    kept.see("left running: 1 (zeno attach box 1");
    assert_eq!(kept.end(), 0);
    assert_eq!(outcome(&home, 1), json!(null));
}

#[test]
fn who_has_nothing_to_say_ends_no_input() {
    let home = Home::new();
    home.create("box", &[]);
    let mut shell = Screen::open(&home, &["shell", "box"]);
    shell.type_in(b"echo rea''dy\n");
    shell.see("ready");
    // With `/dev/null` as its input, and a pipe as its output.
    let mut listener = home.command(&["attach", "box", "1"]).spawn().unwrap();
    let (tell, heard) = mpsc::channel();
    let mut stdout = listener.stdout.take().unwrap();
    thread::spawn(move || {
        let mut text = [0; 64];
        tell.send(stdout.read(&mut text).unwrap()).unwrap();
    });
    until("it to listen", || {
        shell.type_in(b"echo be''at\n");
        shell.next("beat");
        heard.try_recv().ok()
    });
    shell.type_in(b"echo still he''re\n");
    shell.see("still here");
    listener.kill().unwrap();
    listener.wait().unwrap();
    shell.type_in(b"exit 5\n");
    assert_eq!(shell.end(), 5);
}
