//! A command, from its start to its end, with all that it writes.
//!
//! What init says is taken as hostile: only what may come from there is heard, and the clock is ours.

use std::path::Path;
use std::time::{Duration, Instant};

use control::Conversation;
use control::frames::{FrameError, FrameReader, FrameWriter};
use model::config::Check;
use model::exec::{ExecRequest, FrameKind, Outcome, Text};
use model::units::Span;
use model::{Code, Problem};

use crate::log::{Log, LogError, Stream, Written};

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Outcome,
    pub(crate) duration: Duration,
    pub(crate) written: Written,
}

/// A line for `sh`, in the workspace's root or where commands of the sandbox start.
pub(crate) fn shell(line: &str, workspace: Option<&Text>, timeout: Option<Span>) -> ExecRequest {
    ExecRequest {
        argv: vec!["/bin/sh".into(), "-c".into(), line.into()],
        cwd: workspace.cloned(),
        timeout: Some(timeout.unwrap_or(Check::TIMEOUT)),
        ..ExecRequest::default()
    }
}

/// Hears a command out. `input` is what it reads, if it reads anything.
pub(crate) async fn hear(
    conversation: Conversation,
    input: Option<&[u8]>,
    timeout: Span,
    log: &Path,
) -> Result<Ran, CommandError> {
    let began = Instant::now();
    let Conversation { stream, hindsight } = conversation;
    let (read, write) = stream.into_split();
    let mut log = Log::create(log).await.map_err(CommandError::Log)?;
    let feed = async {
        let mut writer = FrameWriter::new(write);
        if let Some(input) = input {
            // A command that does not read to the end has its reasons; how it ends tells.
            if let Err(error) = feed(&mut writer, input).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "a command took no more input");
            }
        }
        // Not dropped: init would take that for leaving.
        std::future::pending::<()>().await;
        drop(writer);
    };
    let patience = timeout.0.saturating_add(GRACE);
    let exit = tokio::select! {
        exit = tokio::time::timeout(patience, listen(FrameReader::new(read), &mut log)) => match exit {
            Ok(exit) => exit?,
            Err(_elapsed) => Outcome::TimedOut,
        },
        () = feed => unreachable!("it goes on for ever"),
    };
    let duration = began.elapsed();
    let written = log.finish().await.map_err(CommandError::Log)?;
    Ok(Ran { exit: hindsight.judge(exit), duration, written })
}

async fn feed(
    writer: &mut FrameWriter<impl tokio::io::AsyncWrite + Unpin>,
    input: &[u8],
) -> std::io::Result<()> {
    if !input.is_empty() {
        writer.send(FrameKind::Stdin, input).await?;
    }
    writer.send(FrameKind::Stdin, b"").await
}

async fn listen(
    mut init: FrameReader<impl tokio::io::AsyncRead + Unpin>,
    log: &mut Log,
) -> Result<Outcome, CommandError> {
    loop {
        let Some((kind, payload)) = init.next().await.map_err(CommandError::Frame)? else {
            let reason = "its first process closed the conversation".to_owned();
            return Ok(Outcome::SandboxEnded { reason });
        };
        match kind {
            FrameKind::Started => {}
            FrameKind::Stdout => log.take(Stream::Out, &payload).await.map_err(CommandError::Log)?,
            FrameKind::Stderr => log.take(Stream::Err, &payload).await.map_err(CommandError::Log)?,
            FrameKind::Ended => return serde_json::from_slice(&payload).map_err(CommandError::Garbled),
            FrameKind::Problem => {
                let problem: Problem = serde_json::from_slice(&payload).map_err(CommandError::Garbled)?;
                return Ok(Outcome::NotStarted { code: 125, reason: problem.detail });
            }
            FrameKind::Stdin
            | FrameKind::Resize
            | FrameKind::Signal
            | FrameKind::Request
            | FrameKind::Progress
            | FrameKind::Removed
            | FrameKind::Answer => return Err(CommandError::Kind { kind }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("could not keep what a command wrote")]
    Log(#[source] LogError),
    #[error("the sandbox's first process sent a frame that is not one")]
    Frame(#[source] FrameError),
    #[error("the sandbox's first process did not say how the command ended")]
    Garbled(#[source] serde_json::Error),
    #[error("a frame of kind {kind:?} may not come from a sandbox")]
    Kind { kind: FrameKind },
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        Self::from_error(Code::Internal, &error)
    }
}

/// What init is given to end a command by itself when its time is over.
const GRACE: Duration = Duration::from_secs(15);
