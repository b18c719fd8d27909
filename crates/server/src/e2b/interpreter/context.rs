//! A context: a kernel that remembers what ran in it. One task has the conversation with its bridge, and runs one execution after the
//! other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use control::Control;
use model::SandboxId;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::{Interval, interval, timeout};

use super::bridge::{Bridge, Ended, Settings};
use super::failure::Refused;
use super::wire::{Command, Listed, Output};

#[derive(Debug)]
pub(super) struct Context {
    pub(super) id: String,
    pub(super) is_default: bool,
    pub(super) settings: Settings,
    cwd: String,
    jobs: mpsc::Sender<Job>,
    end: Arc<Notify>,
    /// Closed when all of it is gone.
    over: watch::Receiver<()>,
}

/// What is to be executed, and where the lines go that come of it. Who no longer takes them has it interrupted.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) code: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) out: mpsc::Sender<Told>,
}

/// A line, or that the answer is to be cut off.
pub(super) type Told = Result<Bytes, Cut>;

/// The clients then ask whether the sandbox is still there.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox ended while code ran in it")]
pub(super) struct Cut;

/// What a context is to be.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) id: String,
    pub(super) is_default: bool,
    pub(super) settings: Settings,
}

impl New {
    pub(super) fn called(id: String, is_default: bool, settings: Settings) -> Self {
        Self { id, is_default, settings }
    }
}

impl Context {
    /// Returns when its kernel is ready. It lives until it is ended, or its bridge has ended; `room` is kept as long.
    pub(super) async fn start(
        control: &Control,
        sandbox: SandboxId,
        new: New,
        room: OwnedSemaphorePermit,
    ) -> Result<Arc<Self>, Refused> {
        let New { id, is_default, settings } = new;
        let bridge = Bridge::start(control, sandbox, &id, &settings).await?;
        let (jobs, given) = mpsc::channel(WAITING);
        let end = Arc::new(Notify::new());
        let (going, over) = watch::channel(());
        let cwd = bridge.cwd.clone();
        let task = Task { control: control.clone(), sandbox, bridge, end: Arc::clone(&end) };
        tokio::spawn(async move {
            task.go(given).await;
            drop((room, going));
        });
        Ok(Arc::new(Self { id, is_default, settings, cwd, jobs, end, over }))
    }

    pub(super) fn is_live(&self) -> bool {
        !self.jobs.is_closed()
    }

    pub(super) fn execute(&self, job: Job) -> Result<(), Refused> {
        self.jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => Refused::Busy,
            TrySendError::Closed(_) => Refused::NoContext { id: self.id.clone() },
        })
    }

    /// Returns when it has ended.
    pub(super) async fn end(&self) {
        self.end.notify_one();
        let mut over = self.over.clone();
        while over.changed().await.is_ok() {}
    }

    pub(super) fn listed(&self) -> Listed {
        Listed { id: self.id.clone(), language: "python", cwd: self.cwd.clone() }
    }
}

struct Task {
    control: Control,
    sandbox: SandboxId,
    bridge: Bridge,
    end: Arc<Notify>,
}

impl Task {
    async fn go(mut self, mut jobs: mpsc::Receiver<Job>) {
        let ended = loop {
            let job = tokio::select! {
                job = jobs.recv() => job,
                line = self.bridge.lines.next() => match line {
                    Ok(line) => {
                        tracing::debug!(length = line.len(), "a kernel said something that nobody asked for");
                        continue;
                    }
                    Err(ended) => break ended,
                },
                () = self.end.notified() => break Ended::Asked,
            };
            // Nobody has the context any more.
            let Some(job) = job else { break Ended::Asked };
            // Who left while it waited has it not begun.
            if job.out.is_closed() {
                continue;
            }
            if let Err(ended) = self.execute(job).await {
                break ended;
            }
        };
        // Nobody comes in any more, and those who wait are told.
        jobs.close();
        while let Some(job) = jobs.recv().await {
            last_words(&job.out, &ended).await;
        }
        let Self { control, sandbox, bridge, .. } = self;
        match ended {
            Ended::Sandbox { .. } | Ended::NotBegun { .. } | Ended::Process { .. } | Ended::Refused(_) => {
                tracing::debug!(%sandbox, error = &ended as &dyn std::error::Error, "a context has ended");
            }
            Ended::Asked => bridge.end(&control, sandbox).await,
            Ended::TooLong | Ended::First(_) | Ended::Deaf(_) | Ended::Frame(_) | Ended::Violation(_) => {
                tracing::warn!(%sandbox, error = &ended as &dyn std::error::Error, "a context is ended");
                bridge.end(&control, sandbox).await;
            }
        }
    }

    async fn execute(&mut self, Job { code, env, out }: Job) -> Result<(), Ended> {
        let mut out = Some(out);
        let executed = self.pass_on(&code, &env, &mut out).await;
        if let (Err(ended), Some(out)) = (&executed, &out) {
            last_words(out, ended).await;
        }
        executed
    }

    /// Runs to its end even if nobody listens any more, so that the next one begins where it can.
    async fn pass_on(
        &mut self,
        code: &str,
        env: &BTreeMap<String, String>,
        out: &mut Option<mpsc::Sender<Told>>,
    ) -> Result<(), Ended> {
        self.bridge.say(&Command::Execute { code, env }).await?;
        let mut again = interval(AGAIN);
        loop {
            let has_left = tokio::select! {
                line = self.bridge.lines.next() => {
                    let output = Output::read(&line?);
                    let is_taken = match &*out {
                        Some(out) => tokio::select! {
                            is_taken = tell(out, &output) => is_taken,
                            () = self.end.notified() => return Err(Ended::Asked),
                        },
                        None => true,
                    };
                    if output == Output::EndOfExecution {
                        return Ok(());
                    }
                    !is_taken
                }
                () = gone(out.as_ref(), &mut again) => true,
                () = self.end.notified() => return Err(Ended::Asked),
            };
            if has_left {
                *out = None;
                self.bridge.say(&Command::Interrupt).await?;
            }
        }
    }
}

/// Returns when nobody takes what comes; then again and again, because code may not hear the first interrupt.
async fn gone(out: Option<&mpsc::Sender<Told>>, again: &mut Interval) {
    match out {
        Some(out) => {
            out.closed().await;
            again.reset();
        }
        None => drop(again.tick().await),
    }
}

/// Is it taken? Who takes nothing for too long has left.
async fn tell(out: &mpsc::Sender<Told>, output: &Output) -> bool {
    let mut line = serde_json::to_vec(output).expect("wire types cannot fail to serialise");
    line.push(b'\n');
    matches!(timeout(STALLED, out.send(Ok(line.into()))).await, Ok(Ok(())))
}

/// An execution that does not come to its end.
async fn last_words(out: &mpsc::Sender<Told>, ended: &Ended) {
    let is_told = match ended {
        Ended::Sandbox { .. } => timeout(STALLED, out.send(Err(Cut))).await.is_ok_and(|sent| sent.is_ok()),
        ended => {
            let error = Output::error("ContextEnded", format!("{ended}: what it held is gone"));
            tell(out, &error).await && tell(out, &Output::EndOfExecution).await
        }
    };
    if !is_told {
        tracing::trace!("whoever ran code left before it was told of the end");
    }
}

/// Executions that wait for the one that runs.
const WAITING: usize = 32;
const AGAIN: Duration = Duration::from_secs(2);
const STALLED: Duration = Duration::from_secs(120);
