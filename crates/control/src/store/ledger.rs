//! The thread that owns the connection.
//!
//! Whatever waits when a transaction begins goes into it, each piece of work in a savepoint of its own: a hundred
//! sandboxes at once cost a few commits, and one refused request does not spoil its neighbours. Callers are
//! answered, and events published, only after the commit.

use std::collections::VecDeque;
use std::sync::Arc;

use model::event::Event;
use rusqlite::Connection;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::Error;

#[derive(Debug)]
pub(super) struct Ledger {
    connection: Connection,
    publish: broadcast::Sender<Event>,
}

pub(super) enum Message {
    Job(Box<dyn Job>),
    Close,
}

/// A transaction in the making.
pub(super) struct Page<'a> {
    pub(super) connection: &'a Connection,
    /// Published if the transaction is committed.
    pub(super) events: Vec<Event>,
}

/// A piece of work and whoever waits for it. A trait, because the answers are of many types.
pub(super) trait Job: Send {
    /// Does the work; what it did is kept or undone as the answer says.
    fn run(&mut self, page: &mut Page<'_>) -> Keep;

    /// Answers, now that the fate of the transaction is known.
    fn settle(self: Box<Self>, commit: Result<(), Arc<rusqlite::Error>>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

pub(super) struct Call<T, F> {
    work: Option<F>,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl Ledger {
    pub(super) fn new(connection: Connection, publish: broadcast::Sender<Event>) -> Self {
        Self { connection, publish }
    }

    pub(super) fn serve(self, mut messages: mpsc::Receiver<Message>) {
        let mut waiting = VecDeque::new();
        let mut closing = false;
        while !closing && let Some(first) = messages.blocking_recv() {
            let mut next = Some(first);
            while let Some(message) = next.take() {
                match message {
                    Message::Job(job) => waiting.push_back(job),
                    Message::Close => closing = true,
                }
                if !closing
                    && waiting.len() < BATCH
                    && let Ok(message) = messages.try_recv()
                {
                    next = Some(message);
                }
            }
            while !waiting.is_empty() {
                self.commit(&mut waiting);
            }
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::error!(error = &error as &dyn std::error::Error, "failed to close the store");
        }
    }

    /// Runs what waits in one transaction. Leaves the rest waiting if SQLite gives the transaction up half-way.
    fn commit(&self, waiting: &mut VecDeque<Box<dyn Job>>) {
        let mut page = Page { connection: &self.connection, events: Vec::new() };
        let mut done = Vec::with_capacity(waiting.len());
        let commit = self.write(&mut page, waiting, &mut done);
        match &commit {
            Ok(()) => self.publish(page.events),
            Err(error) => {
                tracing::error!(error = &**error as &dyn std::error::Error, "a transaction failed");
                self.abandon();
                // A transaction that cannot even begin has no one to blame: all who wait hear of it.
                if done.is_empty() {
                    done.extend(waiting.drain(..));
                }
            }
        }
        for job in done {
            job.settle(commit.clone());
        }
    }

    fn write(
        &self,
        page: &mut Page<'_>,
        waiting: &mut VecDeque<Box<dyn Job>>,
        done: &mut Vec<Box<dyn Job>>,
    ) -> Result<(), Arc<rusqlite::Error>> {
        self.say("BEGIN IMMEDIATE")?;
        // A full disk makes SQLite end the transaction by itself; whoever comes after needs a new one.
        while !self.connection.is_autocommit()
            && let Some(job) = waiting.pop_front()
        {
            let before = page.events.len();
            let job = done.push_mut(job);
            self.say("SAVEPOINT job")?;
            if job.run(page) == Keep::No {
                page.events.truncate(before);
                if self.connection.is_autocommit() {
                    break;
                }
                self.say("ROLLBACK TO job")?;
            }
            self.say("RELEASE job")?;
        }
        self.say("COMMIT")
    }

    fn abandon(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.say("ROLLBACK")
        {
            tracing::error!(error = &*error as &dyn std::error::Error, "failed to roll back");
        }
    }

    fn say(&self, statement: &'static str) -> Result<(), Arc<rusqlite::Error>> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    fn publish(&self, events: Vec<Event>) {
        for event in events {
            if self.publish.send(event).is_err() {
                tracing::trace!("nobody listens for events");
            }
        }
    }
}

impl<T, F> Call<T, F>
where
    F: FnOnce(&mut Page<'_>) -> Result<T, Error>,
{
    pub(super) fn new(work: F, reply: oneshot::Sender<Result<T, Error>>) -> Self {
        Self { work: Some(work), result: None, reply }
    }
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnOnce(&mut Page<'_>) -> Result<T, Error> + Send,
{
    fn run(&mut self, page: &mut Page<'_>) -> Keep {
        let work = self.work.take().expect("a job is run once");
        let result = work(page);
        let keep = if result.is_ok() { Keep::Yes } else { Keep::No };
        self.result = Some(result);
        keep
    }

    fn settle(self: Box<Self>, commit: Result<(), Arc<rusqlite::Error>>) {
        let answer = match (self.result, commit) {
            // Its own reason says more than that the transaction failed with it.
            (Some(Err(own)), _) => Err(own),
            (_, Err(source)) => Err(Error::Commit { source }),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(Error::Closed),
        };
        if self.reply.send(answer).is_err() {
            tracing::debug!("whoever asked the store did not wait for the answer");
        }
    }
}

/// How many requests go into one transaction at most.
const BATCH: usize = 64;
