//! `process.Process`: commands with their streams and terminals.

mod session;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use futures_util::{Stream, stream};
use model::exec::{Exec, ExecRequest, Text, Variable};
use model::units::Span;
use model::{Sandbox, SandboxId};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{one, streamed, user};
use crate::e2b::E2b;
use crate::e2b::connect::{self, Error, Messages};
use crate::e2b::meant::Inside;
use session::{Known, Session, Told};
use wire::{
    Event, EventMessage, InputRequest, ListResponse, ProcessConfig, ProcessInfo, Selected, Selector,
    SignalRequest, StartRequest, StreamInput, UpdateRequest,
};

pub(in crate::e2b) use session::Sessions;

pub(super) async fn start(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    streamed(begin(&door, inside.sandbox, request).await)
}

async fn begin(
    door: &E2b,
    sandbox: Sandbox,
    request: Request,
) -> Result<impl Stream<Item = Result<EventMessage, Error>> + use<>, Error> {
    let (user, timeout) = (user(request.headers())?, connect::timeout(request.headers()));
    let pause = connect::keepalive(request.headers());
    let StartRequest { process, pty, tag, stdin } = Messages::only(request).await?;
    if tag.as_ref().is_some_and(|tag| tag.len() > LONGEST_TAG) {
        return Err(Error::invalid(format!("a tag has at most {LONGEST_TAG} bytes")));
    }
    if process.cmd.is_empty() {
        return Err(Error::invalid("no command is given"));
    }
    let words = std::iter::once(&process.cmd).chain(&process.args);
    let variable = |(name, value): (&String, &String)| Variable {
        name: name.as_str().into(),
        value: value.as_str().into(),
    };
    let exec = ExecRequest {
        argv: words.map(|word| Text::from(word.as_str())).collect(),
        env: process.envs.iter().map(variable).collect(),
        cwd: process.cwd.as_deref().filter(|cwd| !cwd.is_empty()).map(Text::from),
        user,
        tty: pty.map(wire::Pty::window),
        stdin: stdin.unwrap_or(true),
        timeout: timeout.map(Span),
        ..ExecRequest::default()
    };
    let conversation = door.app.control.exec(&sandbox.id.to_string(), exec).await?;
    let known = Known { sandbox: sandbox.id, config: process, tag };
    let session = door.sessions.open(known, conversation).await?;
    Ok(events(&session, pause))
}

pub(super) async fn connect(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let pause = connect::keepalive(request.headers());
    let joined = async {
        let Selected { process } = Messages::only(request).await?;
        let session = find(&door, inside.sandbox.id, &process).await?;
        Ok(events(&session, pause))
    };
    streamed(joined.await)
}

pub(super) async fn list(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    _request: Request,
) -> Response {
    let id = inside.sandbox.id;
    let listed = async {
        let execs = door.app.control.execs(&id.to_string()).await?;
        let running = execs.into_iter().filter(|exec| exec.outcome.is_none());
        let processes = running.map(|exec| described(&door, id, &exec)).collect();
        Ok(ListResponse { processes })
    };
    one(listed.await)
}

/// As it was started, where it was started through this door; else as far as its sandbox knows.
fn described(door: &E2b, id: SandboxId, exec: &Exec) -> ProcessInfo {
    let session = door.sessions.find(|session| session.sandbox == id && session.exec == exec.id);
    match session {
        Some(session) => {
            ProcessInfo { config: session.config.clone(), pid: session.pid, tag: session.tag.clone() }
        }
        None => ProcessInfo { pid: exec.pid, config: config_of(exec), tag: None },
    }
}

fn config_of(exec: &Exec) -> ProcessConfig {
    let mut words = exec.argv.iter().map(|word| word.display().into_owned());
    let cmd = words.next().unwrap_or_default();
    ProcessConfig { cmd, args: words.collect(), ..ProcessConfig::default() }
}

pub(super) async fn send_input(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let fed = async {
        let InputRequest { process, input } = connect::message(request).await?;
        let session = find_running(&door, inside.sandbox.id, &process).await?;
        session.feed(input.bytes()).await?;
        Ok(nothing())
    };
    one(fed.await)
}

pub(super) async fn stream_input(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let mut messages = Messages::of(request);
    let fed = async {
        let mut to = None;
        while let Some(message) = messages.next::<StreamInput>().await {
            let StreamInput { start, data } = message?;
            if let Some(Selected { process }) = start {
                to = Some(find_running(&door, inside.sandbox.id, &process).await?);
            }
            match (&to, data) {
                (Some(session), Some(data)) => session.feed(data.input.bytes()).await?,
                (None, Some(_)) => return Err(Error::invalid("the stream does not begin with a process")),
                (_, None) => {}
            }
        }
        Ok(stream::iter([Ok(nothing())]))
    };
    streamed(fed.await)
}

pub(super) async fn close_stdin(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let closed = async {
        let Selected { process } = connect::message(request).await?;
        find_running(&door, inside.sandbox.id, &process).await?.close_input().await?;
        Ok(nothing())
    };
    one(closed.await)
}

pub(super) async fn update(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let updated = async {
        let UpdateRequest { process, pty } = connect::message(request).await?;
        let session = find_running(&door, inside.sandbox.id, &process).await?;
        if let Some(pty) = pty {
            session.resize(pty.window()).await?;
        }
        Ok(nothing())
    };
    one(updated.await)
}

pub(super) async fn send_signal(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Response {
    let sent = async {
        let SignalRequest { process, signal } = connect::message(request).await?;
        let exec = running_exec(&door, inside.sandbox.id, &process).await?;
        door.app.control.signal(&inside.sandbox.id.to_string(), exec.id, signal.number()).await?;
        Ok(nothing())
    };
    one(sent.await)
}

/// A command of a sandbox, running or ended not long ago.
async fn find(door: &E2b, id: SandboxId, process: &Selector) -> Result<Arc<Session>, Error> {
    let is_meant = |session: &Session| session.sandbox == id && is(session, process);
    match door.sessions.find(|session| is_meant(session) && !session.has_ended()) {
        Some(session) => Ok(session),
        // It may have been started by an earlier daemon, or not through this door.
        None => match join(door, id, process).await {
            Ok(session) => Ok(session),
            Err(error) => door.sessions.find(is_meant).ok_or(error),
        },
    }
}

async fn find_running(door: &E2b, id: SandboxId, process: &Selector) -> Result<Arc<Session>, Error> {
    let session = find(door, id, process).await?;
    if session.has_ended() { Err(no_such(process)) } else { Ok(session) }
}

fn is(session: &Session, process: &Selector) -> bool {
    match process {
        Selector::Pid(pid) => session.pid == *pid,
        Selector::Tag(tag) => session.tag.as_ref() == Some(tag),
    }
}

async fn join(door: &E2b, id: SandboxId, process: &Selector) -> Result<Arc<Session>, Error> {
    let exec = running_exec(door, id, process).await?;
    let conversation = door.app.control.attach(&id.to_string(), exec.id).await?;
    let known = Known { sandbox: id, config: config_of(&exec), tag: None };
    door.sessions.open(known, conversation).await
}

async fn running_exec(door: &E2b, id: SandboxId, process: &Selector) -> Result<Exec, Error> {
    let tagged = match process {
        Selector::Pid(_) => None,
        Selector::Tag(_) => door.sessions.find(|session| session.sandbox == id && is(session, process)),
    };
    let execs = door.app.control.execs(&id.to_string()).await?;
    let is_meant = |exec: &Exec| match (process, &tagged) {
        (Selector::Pid(pid), _) => exec.pid == *pid,
        (Selector::Tag(_), Some(session)) => exec.id == session.exec,
        (Selector::Tag(_), None) => false,
    };
    let found = execs.into_iter().find(|exec| exec.outcome.is_none() && is_meant(exec));
    found.ok_or_else(|| no_such(process))
}

fn no_such(process: &Selector) -> Error {
    Error::not_found(match process {
        Selector::Pid(pid) => format!("no process with pid {pid}"),
        Selector::Tag(tag) => format!("no process with tag {tag}"),
    })
}

/// What a session says, and that it is alive where it says nothing for so long.
fn events(session: &Session, pause: Duration) -> impl Stream<Item = Result<EventMessage, Error>> + use<> {
    stream::unfold(Some(session.listen()), move |listening: Option<mpsc::Receiver<Told>>| async move {
        let mut listening = listening?;
        let told = match tokio::time::timeout(pause, listening.recv()).await {
            Ok(told) => told?,
            Err(_quiet) => Ok(Event::Keepalive {}),
        };
        let is_last = matches!(told, Err(_) | Ok(Event::End(_)));
        let rest = if is_last { None } else { Some(listening) };
        Some((told.map(|event| EventMessage { event }), rest))
    })
}

/// It is remembered after its command's end.
const LONGEST_TAG: usize = 256;

/// The message without fields.
fn nothing() -> Value {
    json!({})
}
