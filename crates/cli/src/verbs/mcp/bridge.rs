//! Between the client's pipes and the daemon: messages pass through a line at a time, as they are.
//!
//! The daemon may be replaced or killed meanwhile. Whoever waits for an answer then is told so, and with the next message there is a
//! daemon again, which is told how the client introduced itself. Never answers in the daemon's place otherwise.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use model::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, Chain, ReadHalf, WriteHalf};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::lines::{Line, Lines};
use crate::api::{Api, Opening};
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::output::{Sink, pass_on};

/// Until the client closes our standard input.
pub(super) async fn serve(allow_promote: bool, invocation: &Invocation) -> Result<u8, Failure> {
    let context = Caller::read(invocation)?.context();
    let opening = Opening { context, allow_promote };
    let mut bridge =
        Bridge { invocation, opening, daemon: None, introduction: None, waiting: BTreeMap::new() };
    let mut client = Lines::new(tokio::io::stdin());
    loop {
        tokio::select! {
            line = client.next() => match line.map_err(Failure::Stdin)? {
                Some(Line::Whole(line)) => bridge.pass_in(&line).await?,
                Some(Line::TooLong) => say(&Fault::to_nobody(INVALID_REQUEST, "the message is too long")).await?,
                None => break,
            },
            line = next_of(&mut bridge.daemon) => bridge.pass_out(line).await?,
        }
    }
    bridge.last_words().await?;
    Ok(DONE)
}

struct Bridge<'a> {
    invocation: &'a Invocation,
    opening: Opening,
    daemon: Option<Daemon>,
    /// How the client introduced itself, for the next daemon. Those of the newer protocol do not.
    introduction: Option<Vec<u8>>,
    /// Requests that have no answer yet, by how their ids are written.
    waiting: BTreeMap<String, Value>,
}

struct Daemon {
    lines: Lines<Chain<io::Cursor<bytes::Bytes>, ReadHalf<UnixStream>>>,
    writer: WriteHalf<UnixStream>,
}

/// What can be told of a message without understanding it.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    request_id: Option<Value>,
}

impl Bridge<'_> {
    async fn pass_in(&mut self, line: &[u8]) -> Result<(), Failure> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let head: Head = match serde_json::from_slice(line) {
            Ok(head) => head,
            Err(error) => {
                let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
                return say(&Fault::to_nobody(code, &format!("not a message: {error}"))).await;
            }
        };
        let is_introduction = head.method.as_deref() == Some("initialize");
        if is_introduction {
            // Another one begins a conversation of its own.
            self.introduction = Some(line.to_vec());
            self.daemon = None;
        }
        if head.method.as_deref() == Some(CANCELLED)
            && let Some(cancelled) = head.params.and_then(|params| params.request_id)
        {
            self.waiting.remove(&cancelled.to_string());
        }
        let request = head.id.filter(|_| head.method.is_some());
        let mut sent = self.deliver(line, is_introduction).await;
        if sent.is_err() {
            // It was gone before it could have heard of this.
            self.lost().await?;
            sent = self.deliver(line, is_introduction).await;
        }
        match (sent, request) {
            (Ok(()), Some(id)) => {
                self.waiting.insert(id.to_string(), id);
                Ok(())
            }
            (Err(problem), Some(id)) => say(&Fault::of(id, &problem)).await,
            (Ok(()) | Err(_), None) => Ok(()),
        }
    }

    /// Brings a message to a daemon. Where that fails, there is none any more.
    async fn deliver(&mut self, line: &[u8], is_introduction: bool) -> Result<(), Problem> {
        let sent = match self.reach(is_introduction).await {
            Ok(()) => {
                self.send(line).await.map_err(|error| Problem::from_error(model::Code::NotReady, &error))
            }
            Err(problem) => Err(problem),
        };
        if sent.is_err() {
            self.daemon = None;
        }
        sent
    }

    async fn pass_out(&mut self, line: io::Result<Option<Line>>) -> Result<(), Failure> {
        match line {
            Ok(Some(Line::Whole(mut line))) => {
                self.answered(&line);
                line.push(b'\n');
                pass_on(Sink::Stdout, &line).await
            }
            Ok(Some(Line::TooLong) | None) | Err(_) => self.lost().await,
        }
    }

    fn answered(&mut self, line: &[u8]) {
        if let Ok(Head { id: Some(id), method: None, .. }) = serde_json::from_slice(line) {
            self.waiting.remove(&id.to_string());
        }
    }

    /// There is a daemon that knows the client.
    async fn reach(&mut self, is_introduction: bool) -> Result<(), Problem> {
        if self.daemon.is_some() {
            return Ok(());
        }
        let api = match self.invocation.home() {
            Ok(home) => Api::ensure(&home).await,
            Err(failure) => Err(failure),
        };
        let spoken = match api {
            Ok(api) => api.mcp(&self.opening).await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        let spoken = spoken.map_err(|failure| failure.problem())?;
        self.daemon = Some(Daemon { lines: Lines::new(spoken.reader), writer: spoken.writer });
        if !is_introduction && let Some(introduction) = self.introduction.clone() {
            let introduced = self.introduce(&introduction).await;
            introduced.map_err(|error| Problem::from_error(model::Code::NotReady, &error))?;
        }
        Ok(())
    }

    /// Says again what the client said at its beginning; it has the answer already.
    async fn introduce(&mut self, introduction: &[u8]) -> io::Result<()> {
        self.send(introduction).await?;
        let answer = tokio::time::timeout(PATIENCE, next_of(&mut self.daemon)).await;
        match answer {
            Ok(Ok(Some(_))) => self.send(INITIALIZED).await,
            Ok(Ok(None)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Err(error)) => Err(error),
            Err(_late) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(daemon) = &mut self.daemon else { return Err(io::ErrorKind::NotConnected.into()) };
        let whole = [line, b"\n"].concat();
        let sent = tokio::time::timeout(PATIENCE, async {
            daemon.writer.write_all(&whole).await?;
            daemon.writer.flush().await
        });
        sent.await.unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The daemon is gone: nobody who waits for it waits any longer.
    async fn lost(&mut self) -> Result<(), Failure> {
        self.daemon = None;
        for id in std::mem::take(&mut self.waiting).into_values() {
            let detail = "zeno's daemon ended before it answered";
            let problem = Problem::new(model::Code::NotReady, detail)
                .hint("call again: the daemon is started anew; sandboxes live on");
            say(&Fault::of(id, &problem)).await?;
        }
        Ok(())
    }

    /// The client has nothing more to say, but may want to hear the answers.
    async fn last_words(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + FAREWELL;
        if let Some(daemon) = &mut self.daemon
            && daemon.writer.shutdown().await.is_err()
        {
            return self.lost().await;
        }
        while !self.waiting.is_empty() && self.daemon.is_some() {
            match tokio::time::timeout_at(deadline, next_of(&mut self.daemon)).await {
                Ok(line) => self.pass_out(line).await?,
                Err(_late) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// What the daemon says next; nothing, ever, while there is none.
async fn next_of(daemon: &mut Option<Daemon>) -> io::Result<Option<Line>> {
    match daemon {
        Some(daemon) => daemon.lines.next().await,
        None => std::future::pending().await,
    }
}

/// An answer of our own: what went wrong on the way.
#[derive(Serialize)]
struct Fault {
    jsonrpc: &'static str,
    id: Value,
    error: FaultBody,
}

#[derive(Serialize)]
struct FaultBody {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Problem>,
}

impl Fault {
    fn of(id: Value, problem: &Problem) -> Self {
        let hints = problem.hints.iter().map(|hint| format!("; {hint}"));
        let message = std::iter::once(problem.detail.clone()).chain(hints).collect();
        let error = FaultBody { code: SERVER_ERROR, message, data: Some(problem.clone()) };
        Self { jsonrpc: "2.0", id, error }
    }

    fn to_nobody(code: i32, message: &str) -> Self {
        let error = FaultBody { code, message: message.to_owned(), data: None };
        Self { jsonrpc: "2.0", id: Value::Null, error }
    }
}

async fn say(fault: &Fault) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(fault).map_err(Failure::Encode)?;
    line.push(b'\n');
    pass_on(Sink::Stdout, &line).await
}

const CANCELLED: &str = "notifications/cancelled";
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const SERVER_ERROR: i32 = -32000;
/// How long the daemon may take to read a message, or to answer an introduction.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long answers are waited for that were asked for before standard input was closed.
const FAREWELL: Duration = Duration::from_secs(10);
