//! Verbs that ask once and print the answer.

use crate::daemon::Daemon;
use crate::program::{output, text};

#[test]
fn an_empty_list_is_a_header_and_an_empty_array() {
    for (arguments, shown) in [
        (&["list"][..], "NAME  STATE  AGE  EXPIRES  NET  WORKSPACE\n"),
        (&["ls", "-q"], ""),
        (&["ps", "--json"], "[]\n"),
    ] {
        let daemon = Daemon::start(|request, mut wire| {
            wire.answer(200, b"[]");
            request.line
        });
        let ended = output(daemon.home(), arguments);
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(0), shown));
        assert_eq!(daemon.end(), "GET /v1/sandboxes?all=false");
    }
}

#[test]
fn what_is_not_there_is_6_and_a_typo_is_2() {
    let daemon = Daemon::start(|_, mut wire| {
        wire.answer(404, br#"{"code":"not_found","status":404,"detail":"there is no sandbox `web`","hints":["zeno list"]}"#);
    });
    let ended = output(daemon.home(), &["status", "web"]);
    daemon.end();
    assert_eq!(ended.status.code(), Some(6));
    insta::assert_snapshot!(text(&ended.stderr), @"
    error: there is no sandbox `web`
      try: zeno list
    ");

    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(output(nowhere.path(), &["status", "--frob"]).status.code(), Some(2));
}

#[test]
fn everything_is_removed_only_with_a_yes() {
    let sandboxes = r#"[{"id":"sbaaaaaaaaaaaa","state":"ready","backend":"native","created":"2026-05-01T12:00:00Z",
        "changed":"2026-05-01T12:00:00Z","cwd":"/","net":"none","limits":{},"actor":"adm"}]"#;
    let daemon = Daemon::start(move |request, mut wire| {
        wire.answer(200, sandboxes.as_bytes());
        request.line
    });
    let ended = output(daemon.home(), &["destroy", "--all"]);
    assert_eq!(ended.status.code(), Some(4));
    insta::assert_snapshot!(text(&ended.stderr), @"
    error: this would remove 1 sandbox, and nobody is there to confirm it
      try: zeno destroy --all --yes
    ");
    assert_eq!(daemon.end(), "GET /v1/sandboxes?all=false");
}

#[test]
fn a_signal_is_sent_by_number() {
    let daemon = Daemon::start(|request, mut wire| {
        wire.answer(204, b"");
        (request.line, request.body)
    });
    assert_eq!(output(daemon.home(), &["kill", "web", "3", "-s", "KILL"]).status.code(), Some(0));
    let expected = ("POST /v1/sandboxes/web/execs/3/signal".to_owned(), br#"{"signal":9}"#.to_vec());
    assert_eq!(daemon.end(), expected);
}

#[test]
fn logs_go_to_the_stream_they_came_from() {
    let daemon = Daemon::start(|_, mut wire| {
        let line = |stream: &str, output: &str| {
            format!(r#"{{"time":"2026-05-01T12:00:00Z","exec":1,"stream":"{stream}",{output}}}"#) + "\n"
        };
        let body = line("stdout", r#""text":"out\n""#) + &line("stderr", r#""bytes":"/w==""#);
        wire.answer(200, body.as_bytes());
    });
    let ended = output(daemon.home(), &["logs", "web"]);
    daemon.end();
    assert_eq!(
        (ended.status.code(), &ended.stdout[..], &ended.stderr[..]),
        (Some(0), &b"out\n"[..], &b"\xff"[..])
    );
}

#[test]
fn a_file_comes_out_and_one_goes_in() {
    let daemon = Daemon::start(|request, mut wire| {
        wire.answer(200, b"contents\xff");
        request.line
    });
    let ended = output(daemon.home(), &["cp", "web:/etc/a b", "-"]);
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"contents\xff"[..]));
    assert_eq!(daemon.end(), "GET /v1/sandboxes/web/files?path=/etc/a%20b");

    let within = output(tempfile::tempdir().unwrap().path(), &["cp", "a", "b"]);
    assert_eq!(within.status.code(), Some(2));
}

#[test]
fn every_shell_gets_its_completions_without_a_daemon() {
    let nowhere = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = output(nowhere.path(), &["completions", shell]);
        assert!(ended.status.success() && text(&ended.stdout).contains("destroy"), "{shell}");
    }
}

#[test]
fn a_fork_tells_which_were_made_and_which_not() {
    const SNAPSHOT: &str = r#"{"id":"snaaaaaaaaaaaa","sandbox":"sbaaaaaaaaaaaa","reason":"fork","created":"2026-05-01T12:00:00Z",
        "depth":1,"actor":"adm"}"#;
    let forks = r#"[{"status":"made","sandbox":{"id":"sbaaaaaaaaaaab","name":"x-1","state":"ready","backend":"native",
        "created":"2026-05-01T12:00:00Z","changed":"2026-05-01T12:00:00Z","cwd":"/","net":"none","limits":{},"actor":"adm"}},
        {"status":"failed","problem":{"code":"name_taken","status":409,"detail":"the name `x-2` is taken"}}]"#;
    let answer = format!(r#"{{"snapshot":{SNAPSHOT},"forks":{forks}}}"#);
    let daemon = Daemon::start(move |request, mut wire| {
        wire.answer(200, answer.as_bytes());
        (request.line, String::from_utf8(request.body).unwrap())
    });
    let ended = output(daemon.home(), &["fork", "web", "-n", "2", "--name", "x"]);
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(2), "x-1\n"));
    insta::assert_snapshot!(text(&ended.stderr), @"error: the name `x-2` is taken");
    let (line, body) = daemon.end();
    assert_eq!(line, "POST /v1/sandboxes/web/fork");
    assert_eq!(body, r#"{"count":2,"name":"x","labels":{},"actor":"agt"}"#);
}

#[test]
fn where_to_go_back_to_need_not_be_said() {
    for (arguments, body) in
        [(&["rollback", "web"][..], "{}"), (&["rollback", "web", "before"], r#"{"snapshot":"before"}"#)]
    {
        let daemon = Daemon::start(|request, mut wire| {
            wire.answer(404, br#"{"code":"not_found","status":404,"detail":"no"}"#);
            (request.line, String::from_utf8(request.body).unwrap())
        });
        assert_eq!(output(daemon.home(), arguments).status.code(), Some(6));
        assert_eq!(daemon.end(), ("POST /v1/sandboxes/web/rollback".to_owned(), body.to_owned()));
    }
}
