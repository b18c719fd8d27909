//! The bridge: a command in the sandbox that has a kernel, and the daemon's conversation with it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use control::{Control, Conversation, Hindsight};
use model::exec::{Exec, ExecRequest, FrameKind, Outcome, Text, Variable};
use model::{ExecId, Problem, SandboxId};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::failure::Refused;
use super::wire::{Command, First};
use crate::api::relay::{Violation, plain_outcome, plain_problem, typed};
use crate::frames::{FrameError, FrameReader, FrameWriter};

/// How a context was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct Bridge {
    pub(super) exec: ExecId,
    /// Where its kernel began.
    pub(super) cwd: String,
    pub(super) lines: Lines,
    input: FrameWriter<OwnedWriteHalf>,
}

impl Bridge {
    /// Returns when its kernel is ready.
    pub(super) async fn start(
        control: &Control,
        sandbox: SandboxId,
        id: &str,
        settings: &Settings,
    ) -> Result<Self, Refused> {
        let which = sandbox.to_string();
        let Conversation { stream, hindsight } = control.exec(&which, request(id, settings)).await?;
        let (read, write) = stream.into_split();
        let (lines, input) = (Lines::new(read, hindsight), FrameWriter::new(write));
        let mut bridge = Self { exec: ExecId(0), cwd: String::new(), lines, input };
        match timeout(START, bridge.greet()).await {
            Ok(Ok(First::Ready { python, cwd })) => {
                tracing::debug!(%sandbox, python, "a kernel is ready");
                bridge.cwd = cwd;
                Ok(bridge)
            }
            Ok(Ok(First::Missing(missing))) => Err(Refused::Missing(missing)),
            Ok(Ok(First::Broken { python, reason })) => Err(Refused::Broken { python, reason }),
            // The folder that was asked for is none, for example.
            Ok(Err(Ended::NotBegun { reason })) => Err(Refused::Request { message: reason }),
            Ok(Err(ended)) => {
                bridge.kill(control, sandbox).await;
                Err(Refused::NotStarted(ended))
            }
            Err(_elapsed) => {
                bridge.kill(control, sandbox).await;
                Err(Refused::Late)
            }
        }
    }

    async fn greet(&mut self) -> Result<First, Ended> {
        self.exec = self.lines.started().await?.id;
        let line = self.lines.next().await?;
        serde_json::from_slice(&line).map_err(Ended::First)
    }

    pub(super) async fn say(&mut self, command: &Command<'_>) -> Result<(), Ended> {
        let mut line = serde_json::to_vec(command).expect("wire types cannot fail to serialise");
        line.push(b'\n');
        match timeout(PATIENCE, self.input.send(FrameKind::Stdin, &line)).await {
            Ok(sent) => sent.map_err(Ended::Deaf),
            Err(elapsed) => Err(Ended::Deaf(elapsed.into())),
        }
    }

    /// Ends it, and its kernel with it.
    pub(super) async fn end(mut self, control: &Control, sandbox: SandboxId) {
        let told = timeout(PATIENCE, self.input.send(FrameKind::Stdin, &[])).await;
        let is_told = matches!(told, Ok(Ok(())));
        if !is_told || timeout(PATIENCE, self.lines.drain()).await.is_err() {
            self.kill(control, sandbox).await;
        }
    }

    async fn kill(&self, control: &Control, sandbox: SandboxId) {
        kill(control, sandbox, self.exec, KILL).await;
    }
}

/// Ends what an earlier daemon began in a sandbox: nobody listens to it any more.
pub(super) async fn end_earlier(control: &Control, sandbox: SandboxId) -> Result<(), Problem> {
    let execs = control.execs(&sandbox.to_string()).await?;
    let mark = Text::from(MARK);
    let is_ours = |exec: &Exec| exec.outcome.is_none() && exec.argv.get(MARKED) == Some(&mark);
    for exec in execs.into_iter().filter(is_ours) {
        kill(control, sandbox, exec.id, TERMINATE).await;
    }
    Ok(())
}

async fn kill(control: &Control, sandbox: SandboxId, exec: ExecId, signal: i32) {
    if let Err(problem) = control.signal(&sandbox.to_string(), exec, signal).await {
        tracing::debug!(%sandbox, %problem, "a bridge to a kernel was not told to end");
    }
}

/// The scripts travel in variables, so that lists of commands stay readable.
fn request(id: &str, settings: &Settings) -> ExecRequest {
    let variable = |(name, value): (&str, &str)| Variable { name: name.into(), value: value.into() };
    let own = settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let scripts = [("ZENO_FIND", FIND), ("ZENO_BRIDGE", BRIDGE)];
    ExecRequest {
        argv: ["/bin/sh", "-c", "eval \"$ZENO_FIND\"", MARK, id].map(Text::from).into(),
        env: own.chain(scripts).map(variable).collect(),
        cwd: settings.cwd.as_deref().filter(|cwd| !cwd.is_empty()).map(Text::from),
        stdin: true,
        ..ExecRequest::default()
    }
}

/// What a command writes, line by line. Holds at most one line and one frame beyond it.
#[derive(Debug)]
pub(super) struct Lines {
    reader: FrameReader<OwnedReadHalf>,
    hindsight: Hindsight,
    buffer: BytesMut,
    /// Of the buffer, what is known to have no end of a line.
    searched: usize,
    /// The last of what it wrote on its error output.
    complaints: VecDeque<u8>,
}

impl Lines {
    fn new(reader: OwnedReadHalf, hindsight: Hindsight) -> Self {
        let (buffer, complaints) = Default::default();
        Self { reader: FrameReader::new(reader), hindsight, buffer, searched: 0, complaints }
    }

    async fn started(&mut self) -> Result<Exec, Ended> {
        match self.reader.next().await? {
            Some((kind @ FrameKind::Started, payload)) => Ok(typed(kind, &payload)?),
            Some((kind, payload)) => Err(self.over(kind, &payload)),
            None => Err(self.closed()),
        }
    }

    /// The next line, without its end. Safe to cancel: what was read stays.
    pub(super) async fn next(&mut self) -> Result<Bytes, Ended> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                line.truncate(line.len() - 1);
                return Ok(line.freeze());
            }
            self.searched = self.buffer.len();
            match self.reader.next().await? {
                Some((FrameKind::Stdout, bytes)) if self.buffer.len() + bytes.len() > LONGEST_LINE => {
                    return Err(Ended::TooLong);
                }
                Some((FrameKind::Stdout, bytes)) => self.buffer.extend_from_slice(&bytes),
                Some((FrameKind::Stderr, bytes)) => self.complain(&bytes),
                Some((kind, payload)) => return Err(self.over(kind, &payload)),
                None => return Err(self.closed()),
            }
        }
    }

    /// To the end of it.
    async fn drain(&mut self) {
        while self.next().await.is_ok() {}
    }

    fn complain(&mut self, bytes: &[u8]) {
        self.complaints.extend(bytes);
        let beyond = self.complaints.len().saturating_sub(COMPLAINTS);
        self.complaints.drain(..beyond);
    }

    fn over(&mut self, kind: FrameKind, payload: &[u8]) -> Ended {
        match kind {
            FrameKind::Ended => match typed(kind, payload) {
                Ok(outcome) => self.ended(plain_outcome(outcome)),
                Err(violation) => violation.into(),
            },
            FrameKind::Problem => match typed(kind, payload) {
                Ok(problem) => Ended::Refused(plain_problem(&problem)),
                Err(violation) => violation.into(),
            },
            kind => Violation::Kind { kind }.into(),
        }
    }

    fn closed(&self) -> Ended {
        self.ended(Outcome::SandboxEnded { reason: "its first process closed the conversation".to_owned() })
    }

    fn ended(&self, outcome: Outcome) -> Ended {
        let complaints =
            String::from_utf8_lossy(&self.complaints.iter().copied().collect::<Vec<u8>>()).trim().to_owned();
        match self.hindsight.judge(outcome) {
            Outcome::SandboxEnded { reason } => Ended::Sandbox { reason },
            Outcome::NotStarted { reason, .. } => Ended::NotBegun { reason },
            outcome if complaints.is_empty() => Ended::Process { how: how(&outcome) },
            outcome => Ended::Process { how: format!("{}: {complaints}", how(&outcome)) },
        }
    }
}

fn how(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Signaled { signal } => format!("signal {signal}"),
        Outcome::OutOfMemory { limit, .. } => format!("out of memory, the limit is {limit}"),
        Outcome::TimedOut => "out of time".to_owned(),
        Outcome::OutputLimit => "it wrote more than it may".to_owned(),
        Outcome::Exited { code } | Outcome::NotStarted { code, .. } => format!("exit status {code}"),
        Outcome::SandboxEnded { reason } => reason.clone(),
    }
}

/// Why nothing more comes of a bridge.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the sandbox has ended: {reason}")]
    Sandbox { reason: String },
    #[error("{reason}")]
    NotBegun { reason: String },
    #[error("the kernel has ended: {how}")]
    Process { how: String },
    #[error("the context was restarted or removed")]
    Asked,
    #[error("the kernel's bridge wrote a line that is too long")]
    TooLong,
    #[error("the first word of the kernel's bridge makes no sense")]
    First(#[source] serde_json::Error),
    #[error("the kernel's bridge takes no input")]
    Deaf(#[source] std::io::Error),
    #[error(transparent)]
    Refused(#[from] Problem),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Violation(#[from] Violation),
}

const BRIDGE: &str = include_str!("bridge.py");
const FIND: &str = include_str!("find.sh");
/// By this a command is known as a bridge, at this place of its arguments.
const MARK: &str = "zeno-interpreter";
const MARKED: usize = 3;
const KILL: i32 = 9;
const TERMINATE: i32 = 15;
/// What one SDK waits for the head of an answer.
const START: Duration = Duration::from_secs(55);
const PATIENCE: Duration = Duration::from_secs(10);
/// More than the bridge's own limit.
const LONGEST_LINE: usize = 16 << 20;
const COMPLAINTS: usize = 2048;

#[cfg(test)]
mod tests;
