//! Stand-in with the signatures `server` is written against; the real crate takes its place.
#![expect(clippy::todo, clippy::unused_async, reason = "signatures only")]

use std::path::PathBuf;

use model::event::Event;
use model::exec::{Exec, ExecRequest, Progress, RunRequest};
use model::files::FileOp;
use model::sandbox::{CreateRequest, Status};
use model::units::Span;
use model::{ExecId, Problem, Sandbox};
use tokio::net::UnixStream;

#[derive(Clone, Debug, Default)]
pub struct Control {}

type Report<'a> = &'a (dyn Fn(Progress) + Sync);

impl Control {
    pub async fn create(&self, _: CreateRequest, _: Report<'_>) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn run(&self, _: RunRequest, _: Report<'_>) -> Result<(Sandbox, UnixStream), Problem> {
        todo!()
    }
    pub async fn list(&self, _all: bool) -> Result<Vec<Sandbox>, Problem> {
        todo!()
    }
    pub async fn get(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn status(&self, _: &str) -> Result<Status, Problem> {
        todo!()
    }
    pub async fn destroy(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn pause(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn resume(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn stop(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn start(&self, _: &str) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn extend(&self, _: &str, _: Span) -> Result<Sandbox, Problem> {
        todo!()
    }
    pub async fn exec(&self, _: &str, _: ExecRequest) -> Result<UnixStream, Problem> {
        todo!()
    }
    pub async fn attach(&self, _: &str, _: ExecId) -> Result<UnixStream, Problem> {
        todo!()
    }
    pub async fn execs(&self, _: &str) -> Result<Vec<Exec>, Problem> {
        todo!()
    }
    pub async fn signal(&self, _: &str, _: ExecId, _: i32) -> Result<(), Problem> {
        todo!()
    }
    pub async fn file(&self, _: &str, _user: Option<&str>, _: &FileOp) -> Result<UnixStream, Problem> {
        todo!()
    }
    pub async fn log_path(&self, _: &str) -> Result<PathBuf, Problem> {
        todo!()
    }
    pub async fn events(&self, _after: u64, _limit: usize) -> Result<Vec<Event>, Problem> {
        todo!()
    }
    pub fn follow(&self, _after: u64) -> Follow {
        todo!()
    }
    pub async fn shutdown(&self) {
        todo!()
    }
}

#[derive(Debug)]
pub struct Follow {}

impl Follow {
    pub async fn next(&mut self) -> Result<Option<Event>, Problem> {
        todo!()
    }
}
