//! A command and what it writes: its beginning and its end, as much as a model can take in.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use control::{Control, Conversation};
use model::exec::{Exec, FrameKind, Outcome};
use model::{Code, ExecId, Problem, SandboxId};
use tokio::runtime::Handle;

use super::progress::Progress;
use crate::api::relay::{Violation, plain_outcome, plain_problem, typed};
use crate::frames::FrameReader;

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Ran {
    /// Absent where it never started.
    pub(super) exec: Option<Exec>,
    pub(super) outcome: Outcome,
    pub(super) output: Output,
}

/// Follows a command to its end. Dropped before, it ends the command.
pub(super) async fn follow(
    control: &Control,
    sandbox: SandboxId,
    conversation: Conversation,
    progress: &mut Progress,
) -> Result<Ran, Problem> {
    let Conversation { stream, hindsight } = conversation;
    let mut reader = FrameReader::new(stream);
    let (mut output, mut running) = (Output::default(), None::<Running>);
    let mut exec = None;
    let mut last_told = Instant::now();
    loop {
        let frame = reader.next().await.map_err(|error| broken(&error))?;
        let outcome = match frame {
            Some((kind @ FrameKind::Started, payload)) if exec.is_none() => {
                let started: Exec = typed(kind, &payload).map_err(|error| broken(&error))?;
                running = Some(Running::of(control, sandbox, started.id));
                exec = Some(started);
                continue;
            }
            Some((FrameKind::Stdout | FrameKind::Stderr, bytes)) => {
                output.push(&bytes);
                if last_told.elapsed() >= PAUSE {
                    last_told = Instant::now();
                    progress.tell(output.last_line()).await;
                }
                continue;
            }
            Some((kind @ FrameKind::Ended, payload)) => {
                plain_outcome(typed(kind, &payload).map_err(|error| broken(&error))?)
            }
            Some((kind @ FrameKind::Problem, payload)) => {
                return Err(plain_problem(&typed(kind, &payload).map_err(|error| broken(&error))?));
            }
            Some((kind, _)) => return Err(broken(&Violation::Kind { kind })),
            None => Outcome::SandboxEnded { reason: "its first process closed the conversation".to_owned() },
        };
        if let Some(running) = running {
            running.ended();
        }
        return Ok(Ran { exec, outcome: hindsight.judge(outcome), output });
    }
}

fn broken(error: &dyn std::error::Error) -> Problem {
    Problem::from_error(Code::Internal, error)
}

/// A command that goes with whoever waits for it.
#[derive(Debug)]
struct Running {
    control: Control,
    runtime: Handle,
    command: Option<(SandboxId, ExecId)>,
}

impl Running {
    fn of(control: &Control, sandbox: SandboxId, exec: ExecId) -> Self {
        Self { control: control.clone(), runtime: Handle::current(), command: Some((sandbox, exec)) }
    }

    fn ended(mut self) {
        self.command = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some((sandbox, exec)) = self.command.take() else { return };
        let control = self.control.clone();
        self.runtime.spawn(async move {
            let ended = control.signal(&sandbox.to_string(), exec, KILL).await;
            crate::best_effort("end a command that nobody waits for", ended);
        });
    }
}

/// What a command wrote, both streams as they came.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL)..]);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
    }

    /// Bytes between the beginning and the end that is kept.
    pub(super) fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Where what is left out begins.
    pub(super) fn cursor(&self) -> Option<String> {
        (self.left_out() > 0).then(|| self.head.len().to_string())
    }

    /// Beginning and end, with a line between them that says what is missing and how to get it.
    pub(super) fn text(&self, how: &str) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out() == 0 {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[... {} bytes left out: {how} ...]\n{tail}", self.left_out())
    }

    fn last_line(&self) -> String {
        let end: Vec<u8> = if self.tail.is_empty() {
            self.head.iter().rev().take(LINE).rev().copied().collect()
        } else {
            self.tail.iter().rev().take(LINE).rev().copied().collect()
        };
        let text = String::from_utf8_lossy(&end);
        text.trim_end().lines().next_back().unwrap_or_default().to_owned()
    }
}

/// How it ended, in one line.
pub(super) fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code } => format!("exit code {code}"),
        Outcome::Signaled { signal } => format!("killed by signal {signal}"),
        Outcome::TimedOut => "ended: it ran longer than its timeout".to_owned(),
        Outcome::OutputLimit => "ended: it wrote more than it may".to_owned(),
        Outcome::OutOfMemory { code, limit } => {
            format!("exit code {code}: the sandbox ran out of its memory of {limit}")
        }
        Outcome::NotStarted { code, reason } => format!("it did not start: {reason} (exit code {code})"),
        Outcome::SandboxEnded { reason } => format!("its sandbox ended: {reason}"),
    }
}

const HEAD: usize = 8 << 10;
const TAIL: usize = 24 << 10;
const LINE: usize = 200;
const KILL: i32 = 9;
/// Between two words on how far a command is.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: impl IntoIterator<Item = Vec<u8>>) -> Output {
        let mut output = Output::default();
        pieces.into_iter().for_each(|piece| output.push(&piece));
        output
    }

    #[test]
    fn a_short_output_is_whole() {
        let output = written([b"one\n".to_vec(), b"two".to_vec()]);
        assert_eq!(output.text("x"), "one\ntwo");
        assert_eq!((output.left_out(), output.cursor(), output.last_line()), (0, None, "two".to_owned()));
    }

    #[test]
    fn of_a_long_one_beginning_and_end_are_kept_and_the_rest_is_named() {
        let line = |number: usize| format!("line {number:07}\n").into_bytes();
        let all: Vec<u8> = (0..100_000).flat_map(line).collect();
        let output = written(all.chunks(4099).map(<[u8]>::to_vec));
        assert_eq!(output.left_out(), (all.len() - HEAD - TAIL) as u64);
        assert_eq!(output.cursor().as_deref(), Some("8192"));
        let text = output.text("ask again");
        assert!(text.starts_with("line 0000000\n") && text.ends_with("line 0099999\n"));
        assert!(text.contains(&format!("[... {} bytes left out: ask again ...]", output.left_out())));
        assert!(text.len() < HEAD + TAIL + 100);
        assert_eq!(written([all]).text("ask again"), text);
    }
}
