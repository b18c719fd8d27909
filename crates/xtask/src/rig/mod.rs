//! The product as a stranger meets it: its binary, its socket, its processes, in a place of its own.
//!
//! Shared by `bench` and `soak`. Never links the product: what is measured is what a user starts.

pub(crate) mod http;
pub(crate) mod interrupt;
pub(crate) mod proc;
pub(crate) mod saves;
pub(crate) mod scratch;
mod stage;
mod subject;
pub(crate) mod traces;
pub(crate) mod tree;
pub(crate) mod zeno;

use std::io;
use std::path::PathBuf;

use crate::files::FileError;
use crate::process::ProcessError;
use crate::program::ProgramError;

pub(crate) use http::Connection;
pub(crate) use scratch::Scratch;
pub(crate) use stage::Stage;
pub(crate) use subject::{Rig, Subject};
pub(crate) use zeno::Zeno;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RigError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Build(#[from] ProgramError),
    #[error("there is no zeno at {}", path.display())]
    NoZeno { path: PathBuf, source: io::Error },
    #[error("cannot listen for Ctrl-C")]
    Watch(#[source] io::Error),
    #[error("told to end; everything was cleaned up")]
    Interrupted,
    #[error("cannot make a scratch folder in {}", place.display())]
    Scratch { place: PathBuf, source: io::Error },
    #[error("{} is a tmpfs: figures from memory would flatter; say `--scratch FOLDER` on a disk", place.display())]
    NotOnDisk { place: PathBuf },
    #[error("cannot connect to the daemon at {}", socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    #[error("the conversation with the daemon broke off")]
    Talk(#[source] io::Error),
    #[error("the daemon answered something that is not HTTP: {line}")]
    NotHttp { line: String },
    #[error("{method} {path} was answered with {status}: {body}")]
    Refused { method: String, path: String, status: u16, body: String },
    #[error("the daemon's answer to {path} cannot be read")]
    Answer { path: String, source: serde_json::Error },
    #[error("the command in {sandbox} did not exit with 0: {answer}")]
    Command { sandbox: String, answer: String },
    #[error("{sandbox} is not as it was before the change: {changes} paths differ")]
    NotBack { sandbox: String, changes: usize },
    #[error("a snapshot of {sandbox} was to be made, and {made} were")]
    NotSealed { sandbox: String, made: usize },
    #[error("{sandbox} changed {expected} paths, and its diff lists {listed}")]
    NotListed { sandbox: String, expected: usize, listed: usize },
    #[error("cannot ask the socket who the daemon is")]
    Peer(#[source] io::Error),
    #[error("cannot signal process {pid}")]
    Signal { pid: i32, source: io::Error },
    #[error("process {pid} did not end within {seconds} s")]
    Survives { pid: i32, seconds: u64 },
    #[error("/proc/{pid}/stat has an unexpected form")]
    Stat { pid: i32 },
}
