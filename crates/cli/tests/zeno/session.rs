//! `zeno run` while its command runs.

use std::io::{Read, Write};
use std::process::Stdio;

use model::exec::{Exec, FrameKind, Outcome, RunRequest, Text, Variable};
use model::{Code, ExecId, Problem};
use rustix::process::Signal;

use crate::daemon::{Daemon, Request, Wire};
use crate::program::{output, send, text, wait, zeno};

pub(crate) fn started(tty: bool) -> Exec {
    Exec { id: ExecId(1), argv: vec!["x".into()], pid: 2, tty, outcome: None }
}

pub(crate) fn begin(request: &Request, wire: &mut Wire) -> RunRequest {
    assert_eq!(request.line, "POST /v1/run");
    let asked: RunRequest = serde_json::from_slice(&request.body).unwrap();
    wire.upgrade();
    wire.tell(FrameKind::Started, &started(asked.exec.tty.is_some()));
    asked
}

pub(crate) fn finish(wire: &mut Wire, outcome: &Outcome) {
    wire.tell(FrameKind::Ended, outcome);
    wire.say(FrameKind::Removed, b"");
}

#[test]
fn streams_stay_apart_and_the_code_is_the_commands_own() {
    let daemon = Daemon::start(|request, mut wire| {
        let asked = begin(&request, &mut wire);
        wire.say(FrameKind::Stdout, b"out\xff");
        wire.say(FrameKind::Stderr, b"err\n");
        finish(&mut wire, &Outcome::Exited { code: 3 });
        asked
    });
    let ended = output(daemon.home(), &["run", "--", "cmd", "-x"]);
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!((&ended.stdout[..], text(&ended.stderr)), (&b"out\xff"[..], "err\n"));

    let home = daemon.home().as_os_str().to_owned();
    let asked = daemon.end();
    let variable = |name: &str, value: Text| Variable { name: name.into(), value };
    let mut env = asked.create.context.env;
    env.sort_by(|a, b| a.name.cmp(&b.name));
    // What points to the ssh agent stays behind.
    assert_eq!(env, [variable("TERM", "xterm-test".into()), variable("ZENO_HOME", home.into())]);
    assert_eq!(asked.create.context.cwd, std::env::current_dir().unwrap().into());
    assert_eq!(asked.exec.argv, [Text::from("cmd"), Text::from("-x")]);
    assert!(!asked.keep);
}

#[test]
fn with_json_every_frame_is_a_line() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        wire.say(FrameKind::Stdout, b"hi\n");
        finish(&mut wire, &Outcome::Signaled { signal: 9 });
    });
    let ended = output(daemon.home(), &["run", "--json", "--", "cmd"]);
    daemon.end();
    assert_eq!(ended.status.code(), Some(137));
    insta::assert_snapshot!(text(&ended.stdout), @r#"
    {"kind":"started","exec":{"id":1,"argv":["x"],"pid":2,"tty":false}}
    {"kind":"stdout","text":"hi\n"}
    {"kind":"ended","outcome":{"kind":"signaled","signal":9}}
    {"kind":"removed"}
    "#);
}

#[test]
fn input_arrives_whole_and_its_end_as_an_empty_frame() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        let mut input = Vec::new();
        loop {
            match wire.hear() {
                Some((FrameKind::Stdin, bytes)) if bytes.is_empty() => break,
                Some((FrameKind::Stdin, bytes)) => input.extend(bytes),
                other => panic!("{other:?}"),
            }
        }
        finish(&mut wire, &Outcome::Exited { code: 0 });
        input
    });
    let mut child = zeno(daemon.home(), &["run", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
    child.stdin.take().unwrap().write_all(&sent).unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
    assert!(daemon.end() == sent);
}

#[test]
fn input_that_never_ends_does_not_keep_zeno() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        finish(&mut wire, &Outcome::Exited { code: 0 });
    });
    let mut child = zeno(daemon.home(), &["run", "true"]).stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
    daemon.end();
}

/// Plays a command that says it runs, hears signals, and is ended by the last of them.
fn until_signal(request: &Request, wire: &mut Wire, last: i32) -> Vec<i32> {
    begin(request, wire);
    wire.say(FrameKind::Stdout, b"ready\n");
    let mut heard = Vec::new();
    while heard.last() != Some(&last) {
        match wire.hear().expect("zeno stays until the command has ended") {
            (FrameKind::Signal, payload) => heard.push(serde_json::from_slice(&payload).unwrap()),
            (FrameKind::Stdin, _) => {}
            other => panic!("{other:?}"),
        }
    }
    finish(wire, &Outcome::Signaled { signal: last });
    heard
}

#[test]
fn signals_are_the_commands() {
    let daemon = Daemon::start(|request, mut wire| until_signal(&request, &mut wire, 15));
    let mut child = zeno(daemon.home(), &["run", "sleep"]).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    send(&child, Signal::HUP);
    send(&child, Signal::TERM);
    assert_eq!(wait(&mut child).code(), Some(143));
    assert_eq!(daemon.end().last(), Some(&15));
}

#[test]
fn two_interrupts_leave() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        wire.say(FrameKind::Stdout, b"ready\n");
        let mut signals = 0;
        while let Some((kind, payload)) = wire.hear() {
            if kind == FrameKind::Signal {
                assert_eq!(payload, b"2");
                signals += 1;
                wire.try_say(FrameKind::Stdout, b"heard\n");
            }
        }
        signals
    });
    let mut child = zeno(daemon.home(), &["run", "stubborn"]).spawn().unwrap();
    // On a slow machine more than a second can pass between two of them; then they count as first ones.
    while child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).is_ok() {
        send(&child, Signal::INT);
    }
    assert_eq!(wait(&mut child).code(), Some(130));
    assert!(daemon.end() >= 1);
}

#[test]
fn a_reader_that_stands_still_does_not_keep_a_signal() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        // More than the pipe and the reader's buffers hold.
        wire.say(FrameKind::Stdout, &vec![b'x'; 500_000]);
        loop {
            match wire.hear().expect("zeno stays until the command has ended") {
                (FrameKind::Signal, payload) => return payload,
                (FrameKind::Stdin, _) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    let mut child = zeno(daemon.home(), &["run", "yes"]).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
    send(&child, Signal::TERM);
    assert_eq!(daemon.end(), b"15");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        while wire.try_say(FrameKind::Stdout, &[b'x'; 10_000]) {}
    });
    let mut child = zeno(daemon.home(), &["run", "yes"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(wait(&mut child).code(), Some(141));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
    daemon.end();
}

#[test]
fn a_refusal_is_125_and_says_what_to_do() {
    let refuse = |_: Request, mut wire: Wire| {
        let problem =
            Problem::new(Code::LimitUnenforceable, "memory cannot be limited here").hint("zeno doctor");
        wire.answer(422, &serde_json::to_vec(&problem).unwrap());
    };
    let daemon = Daemon::start(refuse);
    let ended = output(daemon.home(), &["run", "true"]);
    daemon.end();
    assert_eq!(ended.status.code(), Some(125));
    insta::assert_snapshot!(text(&ended.stderr), @"
    error: memory cannot be limited here
      try: zeno doctor
    ");

    let daemon = Daemon::start(refuse);
    let ended = output(daemon.home(), &["run", "--json", "true"]);
    daemon.end();
    insta::assert_snapshot!(text(&ended.stderr), @r#"{"code":"limit_unenforceable","status":422,"detail":"memory cannot be limited here","hints":["zeno doctor"]}"#);
}

#[test]
fn a_conversation_that_breaks_off_is_zenos_failure() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
    });
    let ended = output(daemon.home(), &["run", "true"]);
    daemon.end();
    assert_eq!(ended.status.code(), Some(125));
    assert_eq!(text(&ended.stderr), "error: the conversation broke off before the command had ended\n");
}

#[test]
fn why_a_command_did_not_start_is_told() {
    let daemon = Daemon::start(|request, mut wire| {
        begin(&request, &mut wire);
        finish(&mut wire, &Outcome::NotStarted { code: 127, reason: "no program `nope`".to_owned() });
    });
    let ended = output(daemon.home(), &["run", "nope"]);
    daemon.end();
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(127), "zeno: no program `nope`\n"));
}
