//! A command that somebody watches, or did: one task has its conversation with init, and gives what it says to all who listen.
//!
//! Who leaves does not end the command. Its end is kept for a while, for those who come late.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use control::{Conversation, Hindsight};
use model::exec::{Exec, FrameKind, Outcome, Window};
use model::{Code, ExecId, Problem, SandboxId};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::wire::{Coded, Data, End, Event, ProcessConfig};
use crate::api::relay::{plain_outcome, plain_problem, typed};
use crate::e2b::connect::{Error, ErrorCode};
use crate::frames::{FrameReader, FrameWriter};

/// Every session of this daemon. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::e2b) struct Sessions(Arc<Mutex<VecDeque<Arc<Session>>>>);

#[derive(Debug)]
pub(super) struct Session {
    pub(super) sandbox: SandboxId,
    pub(super) pid: i32,
    pub(super) exec: ExecId,
    pub(super) config: ProcessConfig,
    pub(super) tag: Option<String>,
    is_terminal: bool,
    input: mpsc::Sender<Typed>,
    stage: Mutex<Stage>,
}

/// What is said to a command.
#[derive(Debug)]
enum Typed {
    Bytes(Vec<u8>),
    EndOfInput,
    Size(Window),
}

#[derive(Debug, Default)]
struct Stage {
    listeners: Vec<mpsc::Sender<Told>>,
    /// How it ended.
    last: Option<Told>,
}

/// What a listener hears.
pub(super) type Told = Result<Event, Error>;

/// What is known of a command when it is joined.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) sandbox: SandboxId,
    pub(super) config: ProcessConfig,
    pub(super) tag: Option<String>,
}

impl Sessions {
    /// Takes part in a conversation that was just opened. Returns when the command has started.
    pub(super) async fn open(&self, known: Known, conversation: Conversation) -> Result<Arc<Session>, Error> {
        let Conversation { stream, hindsight } = conversation;
        let (read, write) = stream.into_split();
        let mut reader = FrameReader::new(read);
        let exec = started(&mut reader).await?;
        let (input, typed) = mpsc::channel(INPUT_QUEUE);
        let Known { sandbox, config, tag } = known;
        let session = Arc::new(Session {
            sandbox,
            pid: exec.pid,
            exec: exec.id,
            config,
            tag,
            is_terminal: exec.tty,
            input,
            stage: Mutex::default(),
        });
        self.remember(Arc::clone(&session));
        let conversation = Task { session: Arc::clone(&session), reader, hindsight };
        tokio::spawn(conversation.go(FrameWriter::new(write), typed));
        Ok(session)
    }

    /// The newest that fits.
    pub(super) fn find(&self, fits: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        self.all().iter().rev().find(|session| fits(session)).cloned()
    }

    fn remember(&self, session: Arc<Session>) {
        let mut all = self.all();
        all.push_back(session);
        let ended = |session: &Arc<Session>| session.stage().last.is_some();
        while all.len() > REMEMBERED
            && let Some(at) = all.iter().position(ended)
        {
            all.remove(at);
        }
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Hears all that comes from now on, first that it runs. Whoever is too slow holds the command up, as a slow terminal does.
    pub(super) fn listen(&self) -> mpsc::Receiver<Told> {
        let (sender, receiver) = mpsc::channel(OUTPUT_QUEUE);
        let mut stage = self.stage();
        let begin = [Some(Ok(Event::Start { pid: self.pid })), stage.last.clone()];
        for told in begin.into_iter().flatten() {
            sender.try_send(told).expect("there is room for two");
        }
        if stage.last.is_none() {
            stage.listeners.push(sender);
        }
        receiver
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stage().last.is_some()
    }

    pub(super) async fn feed(&self, bytes: Vec<u8>) -> Result<(), Error> {
        if bytes.is_empty() { Ok(()) } else { self.say(Typed::Bytes(bytes)).await }
    }

    pub(super) async fn close_input(&self) -> Result<(), Error> {
        if self.is_terminal {
            return Err(Error::new(
                ErrorCode::FailedPrecondition,
                "a terminal's input is not closed: send it a ctrl-d",
            ));
        }
        self.say(Typed::EndOfInput).await
    }

    pub(super) async fn resize(&self, window: Window) -> Result<(), Error> {
        if !self.is_terminal {
            return Err(Error::new(ErrorCode::FailedPrecondition, "the process has no terminal"));
        }
        self.say(Typed::Size(window)).await
    }

    async fn say(&self, typed: Typed) -> Result<(), Error> {
        let gone = |_closed| Error::not_found(format!("the process {} has ended", self.pid));
        self.input.send(typed).await.map_err(gone)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To everyone who still listens.
    async fn tell(&self, event: &Event) {
        let listeners = self.stage().listeners.clone();
        let mut left = false;
        for listener in &listeners {
            left |= listener.send(Ok(event.clone())).await.is_err();
        }
        if left {
            self.stage().listeners.retain(|listener| !listener.is_closed());
        }
    }

    async fn end(&self, last: Told) {
        let listeners = {
            let mut stage = self.stage();
            stage.last = Some(last.clone());
            std::mem::take(&mut stage.listeners)
        };
        for listener in listeners {
            if listener.send(last.clone()).await.is_err() {
                tracing::trace!(pid = self.pid, "a listener left before the end");
            }
        }
    }
}

/// What init says, for as long as it says something.
struct Task {
    session: Arc<Session>,
    reader: FrameReader<tokio::net::unix::OwnedReadHalf>,
    hindsight: Hindsight,
}

impl Task {
    async fn go(mut self, writer: FrameWriter<OwnedWriteHalf>, typed: mpsc::Receiver<Typed>) {
        let listening = pass_on(writer, typed);
        let mut listening = std::pin::pin!(listening);
        let mut listens = true;
        let last = loop {
            let event = tokio::select! {
                event = self.next() => event,
                () = &mut listening, if listens => { listens = false; continue }
            };
            match event {
                Ok(event @ (Event::Start { .. } | Event::Data(_) | Event::Keepalive {})) => {
                    self.session.tell(&event).await;
                }
                last => break last,
            }
        };
        self.session.end(last).await;
    }

    async fn next(&mut self) -> Told {
        let coded = |bytes: Bytes| Coded(bytes.to_vec());
        let frame = self.reader.next().await.map_err(|error| broken(&error))?;
        match frame {
            Some((FrameKind::Stdout, bytes)) if self.session.is_terminal => {
                Ok(Event::Data(Data::Pty(coded(bytes))))
            }
            Some((FrameKind::Stdout, bytes)) => Ok(Event::Data(Data::Stdout(coded(bytes)))),
            Some((FrameKind::Stderr, bytes)) => Ok(Event::Data(Data::Stderr(coded(bytes)))),
            Some((kind @ FrameKind::Ended, payload)) => {
                let outcome = typed(kind, &payload).map_err(|error| broken(&error))?;
                self.ended(plain_outcome(outcome))
            }
            Some((kind @ FrameKind::Problem, payload)) => {
                Err(plain_problem(&typed(kind, &payload).map_err(|error| broken(&error))?).into())
            }
            Some((kind, _)) => Err(broken(&crate::api::relay::Violation::Kind { kind })),
            None => self.ended(Outcome::SandboxEnded {
                reason: "its first process closed the conversation".to_owned(),
            }),
        }
    }

    fn ended(&self, outcome: Outcome) -> Told {
        match self.hindsight.judge(outcome) {
            Outcome::TimedOut => {
                Err(Error::new(ErrorCode::DeadlineExceeded, "the command ran longer than its timeout"))
            }
            // The clients then ask after its health, and find it gone.
            Outcome::SandboxEnded { reason } => Err(Error::new(ErrorCode::Unavailable, reason)),
            outcome => Ok(Event::End(End::of(&outcome))),
        }
    }
}

/// Gives a command what is typed, for as long as it takes it.
async fn pass_on(mut init: FrameWriter<OwnedWriteHalf>, mut typed: mpsc::Receiver<Typed>) {
    while let Some(word) = typed.recv().await {
        let sent = match word {
            Typed::Bytes(bytes) => init.send(FrameKind::Stdin, &bytes).await,
            Typed::EndOfInput => init.send(FrameKind::Stdin, &[]).await,
            Typed::Size(window) => {
                let window = serde_json::to_vec(&window).expect("wire types cannot fail to serialise");
                init.send(FrameKind::Resize, &window).await
            }
        };
        if let Err(error) = sent {
            tracing::debug!(error = &error as &dyn std::error::Error, "init takes no more input");
            return;
        }
    }
}

/// The first word of init: that the command runs, or why it does not.
async fn started(reader: &mut FrameReader<tokio::net::unix::OwnedReadHalf>) -> Result<Exec, Error> {
    match reader.next().await.map_err(|error| broken(&error))? {
        Some((kind @ FrameKind::Started, payload)) => typed(kind, &payload).map_err(|error| broken(&error)),
        Some((kind @ FrameKind::Problem, payload)) => {
            Err(plain_problem(&typed(kind, &payload).map_err(|error| broken(&error))?).into())
        }
        Some((kind @ FrameKind::Ended, payload)) => {
            let outcome = typed(kind, &payload).map_err(|error| broken(&error))?;
            match plain_outcome(outcome) {
                Outcome::NotStarted { reason, .. } => Err(Error::invalid(reason)),
                other => Err(Error::not_found(format!("the process has ended: {other:?}"))),
            }
        }
        Some((kind, _)) => Err(broken(&crate::api::relay::Violation::Kind { kind })),
        None => Err(Error::new(ErrorCode::Unavailable, "the sandbox ended before the command started")),
    }
}

fn broken(error: &dyn std::error::Error) -> Error {
    Problem::from_error(Code::Internal, error).into()
}

/// Sessions that are kept, those that go on not counted out.
const REMEMBERED: usize = 4096;
const INPUT_QUEUE: usize = 16;
const OUTPUT_QUEUE: usize = 64;
