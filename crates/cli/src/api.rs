//! The API as the verbs see it: one function per route. Everything that touches `server::client` is here.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use model::diff::{Between, Detail, Diff};
use model::doctor::Report;
use model::event::Event;
use model::exec::{Exec, ExecRequest, RunRequest, Variable};
use model::files::{FileStat, Listing};
use model::given::Given;
use model::port::{Port, PortRequest};
use model::promotion::{AdvanceRequest, Journey, PromoteRequest, UndoRequest};
use model::race::{Race, RaceRequest};
use model::refresh::{RefreshRequest, Refreshed};
use model::request::{NetChange, Request};
use model::sandbox::{CreateRequest, Status};
use model::snapshot::{
    ForkRequest, Forks, Garbage, RestoreRequest, RollbackRequest, Snapshot, SnapshotRequest,
};
use model::units::Span;
use model::verdict::{Verdict, VerifyRequest};
use model::{Code, ExecId, PromotionId, Sandbox};
use serde::Serialize;
use server::api::Listen;
use server::client::{Client, ClientError};
use tokio::io::AsyncRead;

pub(crate) use server::api::{Health, Opening};
pub(crate) use server::client::{Conversation, Incoming, Outgoing, Spoken};

use crate::args::which::Which;
use crate::failure::Failure;
use crate::signal::SignalNumber;

pub(crate) struct Api {
    client: Client,
}

impl Api {
    /// The daemon of this home, started if there is none.
    pub(crate) async fn ensure(home: &Path) -> Result<Self, Failure> {
        let exe = std::env::current_exe().map_err(Failure::OwnProgram)?;
        Ok(Self { client: server::daemon::ensure(home, &exe).await? })
    }

    /// The daemon of this home, if it runs.
    pub(crate) async fn connect(home: &Path) -> Result<Self, ClientError> {
        Ok(Self { client: Client::connect(home).await? })
    }

    pub(crate) async fn create(&self, request: &CreateRequest) -> Result<Lines, ClientError> {
        let pieces = self.client.post_stream("/v1/sandboxes?steps=true", request).await?;
        Ok(Lines { pieces: Box::new(pieces), buffer: Vec::new() })
    }

    pub(crate) async fn list(&self, all: bool) -> Result<Vec<Sandbox>, ClientError> {
        self.client.get(&format!("/v1/sandboxes?all={all}")).await
    }

    pub(crate) async fn sandbox(&self, which: &Which) -> Result<Sandbox, ClientError> {
        self.client.get(&of(which, "")).await
    }

    /// Is there a sandbox, or a snapshot, of this name or id?
    pub(crate) async fn has_sandbox(&self, which: &Which) -> Result<bool, ClientError> {
        exists(self.sandbox(which).await)
    }

    pub(crate) async fn has(&self, which: &Which) -> Result<bool, ClientError> {
        Ok(exists(self.sandbox(which).await)? || exists(self.get_snapshot(which).await)?)
    }

    pub(crate) async fn status(&self, which: &Which) -> Result<Status, ClientError> {
        self.client.get(&of(which, "/status")).await
    }

    pub(crate) async fn diff(
        &self,
        which: &Which,
        from: Option<&Which>,
        paths: &[Vec<u8>],
        detail: Detail,
    ) -> Result<Diff, ClientError> {
        let lines = detail == Detail::Lines;
        let query = format!("/diff?lines={lines}{}{}", from_query(from), path_query(paths));
        self.client.get(&of(which, &query)).await
    }

    pub(crate) async fn between(
        &self,
        which: &Which,
        with: &Which,
        from: Option<&Which>,
        paths: &[Vec<u8>],
        detail: Detail,
    ) -> Result<Between, ClientError> {
        let lines = detail == Detail::Lines;
        let query = format!("/between?with={with}&lines={lines}{}{}", from_query(from), path_query(paths));
        self.client.get(&of(which, &query)).await
    }

    pub(crate) async fn patch_between(
        &self,
        which: &Which,
        with: &Which,
        from: Option<&Which>,
        paths: &[Vec<u8>],
    ) -> Result<Pieces, ClientError> {
        let query = format!("/between?with={with}&patch=true{}{}", from_query(from), path_query(paths));
        self.pieces(&of(which, &query)).await
    }

    pub(crate) async fn patch(
        &self,
        which: &Which,
        from: Option<&Which>,
        paths: &[Vec<u8>],
    ) -> Result<Pieces, ClientError> {
        let query = format!("/diff?patch=true{}{}", from_query(from), path_query(paths));
        self.pieces(&of(which, &query)).await
    }

    pub(crate) async fn destroy(&self, which: &Which) -> Result<Sandbox, ClientError> {
        self.client.delete(&of(which, "")).await
    }

    pub(crate) async fn change(&self, which: &Which, change: Change) -> Result<Sandbox, ClientError> {
        self.client.post(&of(which, change.path()), &Empty {}).await
    }

    pub(crate) async fn extend(&self, which: &Which, ttl: Span) -> Result<Sandbox, ClientError> {
        self.client.post(&of(which, "/extend"), &ExtendRequest { ttl }).await
    }

    pub(crate) async fn snapshot(
        &self,
        which: &Which,
        request: &SnapshotRequest,
    ) -> Result<Snapshot, ClientError> {
        self.client.post(&of(which, "/snapshots"), request).await
    }

    pub(crate) async fn snapshots(&self, of: Option<&Which>) -> Result<Vec<Snapshot>, ClientError> {
        let query = of.map(|which| format!("?sandbox={which}")).unwrap_or_default();
        self.client.get(&format!("/v1/snapshots{query}")).await
    }

    pub(crate) async fn get_snapshot(&self, which: &Which) -> Result<Snapshot, ClientError> {
        self.client.get(&format!("/v1/snapshots/{which}")).await
    }

    pub(crate) async fn remove_snapshot(&self, which: &Which) -> Result<Snapshot, ClientError> {
        self.client.delete(&format!("/v1/snapshots/{which}")).await
    }

    pub(crate) async fn rollback(
        &self,
        which: &Which,
        request: &RollbackRequest,
    ) -> Result<Sandbox, ClientError> {
        self.client.post(&of(which, "/rollback"), request).await
    }

    pub(crate) async fn refresh(
        &self,
        which: &Which,
        request: &RefreshRequest,
    ) -> Result<Refreshed, ClientError> {
        self.client.post(&of(which, "/refresh"), request).await
    }

    pub(crate) async fn restore(
        &self,
        which: &Which,
        request: &RestoreRequest,
    ) -> Result<Sandbox, ClientError> {
        self.client.post(&format!("/v1/snapshots/{which}/restore"), request).await
    }

    pub(crate) async fn promote(
        &self,
        which: &Which,
        request: &PromoteRequest,
    ) -> Result<Lines, ClientError> {
        let pieces = self.client.post_stream(&of(which, "/promote?steps=true"), request).await?;
        Ok(Lines { pieces: Box::new(pieces), buffer: Vec::new() })
    }

    pub(crate) async fn advance(
        &self,
        which: PromotionId,
        request: &AdvanceRequest,
    ) -> Result<Lines, ClientError> {
        let path = format!("/v1/promotions/{which}/advance?steps=true");
        let pieces = self.client.post_stream(&path, request).await?;
        Ok(Lines { pieces: Box::new(pieces), buffer: Vec::new() })
    }

    pub(crate) async fn promotions(&self) -> Result<Vec<Journey>, ClientError> {
        self.client.get("/v1/promotions").await
    }

    pub(crate) async fn undo(
        &self,
        which: Option<&Which>,
        request: &UndoRequest,
    ) -> Result<Journey, ClientError> {
        match which {
            Some(which) => self.client.post(&format!("/v1/promotions/{which}/undo"), request).await,
            None => self.client.post("/v1/undo", request).await,
        }
    }

    pub(crate) async fn fork(&self, which: &Which, request: &ForkRequest) -> Result<Forks, ClientError> {
        self.client.post(&of(which, "/fork"), request).await
    }

    pub(crate) async fn verify(&self, which: &Which, request: &VerifyRequest) -> Result<Lines, ClientError> {
        let pieces = self.client.post_stream(&of(which, "/verify"), request).await?;
        Ok(Lines { pieces: Box::new(pieces), buffer: Vec::new() })
    }

    pub(crate) async fn verdicts(&self, of: Option<&Which>) -> Result<Vec<Verdict>, ClientError> {
        let query = of.map(|which| format!("?sandbox={which}")).unwrap_or_default();
        self.client.get(&format!("/v1/verdicts{query}")).await
    }

    pub(crate) async fn race(&self, request: &RaceRequest) -> Result<Lines, ClientError> {
        let pieces = self.client.post_stream("/v1/races", request).await?;
        Ok(Lines { pieces: Box::new(pieces), buffer: Vec::new() })
    }

    pub(crate) async fn races(&self) -> Result<Vec<Race>, ClientError> {
        self.client.get("/v1/races").await
    }

    pub(crate) async fn collect_garbage(&self, dry_run: bool) -> Result<Garbage, ClientError> {
        self.client.post("/v1/gc", &CollectRequest { dry_run }).await
    }

    pub(crate) async fn run(&self, request: &RunRequest) -> Result<Conversation, ClientError> {
        self.client.converse("/v1/run", request).await
    }

    pub(crate) async fn exec(
        &self,
        which: &Which,
        request: &ExecRequest,
    ) -> Result<Conversation, ClientError> {
        self.client.converse(&of(which, "/exec"), request).await
    }

    pub(crate) async fn exec_detached(
        &self,
        which: &Which,
        request: &ExecRequest,
    ) -> Result<Exec, ClientError> {
        self.client.post(&of(which, "/exec?detach=true"), request).await
    }

    pub(crate) async fn execs(&self, which: &Which) -> Result<Vec<Exec>, ClientError> {
        self.client.get(&of(which, "/execs")).await
    }

    pub(crate) async fn attach(&self, which: &Which, exec: ExecId) -> Result<Conversation, ClientError> {
        self.client.attach(&of(which, &format!("/execs/{exec}/attach"))).await
    }

    pub(crate) async fn signal(
        &self,
        which: &Which,
        exec: ExecId,
        signal: SignalNumber,
    ) -> Result<(), ClientError> {
        self.client.post(&of(which, &format!("/execs/{exec}/signal")), &SignalRequest { signal }).await
    }

    pub(crate) async fn logs(
        &self,
        which: &Which,
        exec: Option<ExecId>,
        follow: bool,
    ) -> Result<Lines, ClientError> {
        let exec = exec.map(|exec| format!("&exec={exec}")).unwrap_or_default();
        self.lines(&of(which, &format!("/logs?follow={follow}{exec}"))).await
    }

    /// The next page of events after this one; empty when there are no more.
    pub(crate) async fn change_net(&self, which: &Which, change: &NetChange) -> Result<Sandbox, ClientError> {
        self.client.post(&format!("/v1/sandboxes/{which}/net"), change).await
    }

    pub(crate) async fn open_port(&self, which: &Which, request: &PortRequest) -> Result<Port, ClientError> {
        self.client.post(&format!("/v1/sandboxes/{which}/ports"), request).await
    }

    pub(crate) async fn close_port(&self, which: &Which, port: u16) -> Result<Vec<Port>, ClientError> {
        self.client.delete(&format!("/v1/sandboxes/{which}/ports/{port}")).await
    }

    pub(crate) async fn given(&self, which: &Which) -> Result<Given, ClientError> {
        self.client.get(&format!("/v1/sandboxes/{which}/env")).await
    }

    pub(crate) async fn ports(&self, of: Option<&Which>) -> Result<Vec<Port>, ClientError> {
        let query = of.map(|which| format!("?sandbox={which}")).unwrap_or_default();
        self.client.get(&format!("/v1/ports{query}")).await
    }

    /// What sandboxes tried to reach; `query` says of which, and where.
    pub(crate) async fn requests(&self, query: &str) -> Result<Vec<Request>, ClientError> {
        self.client.get(&format!("/v1/requests?{query}")).await
    }

    pub(crate) async fn follow_requests(&self, query: &str) -> Result<Lines, ClientError> {
        self.lines(&format!("/v1/requests?follow&{query}")).await
    }

    pub(crate) async fn request(&self, id: u64) -> Result<Request, ClientError> {
        self.client.get(&format!("/v1/requests/{id}")).await
    }

    pub(crate) async fn events(&self, after: u64) -> Result<Vec<Event>, ClientError> {
        self.client.get(&format!("/v1/events?after={after}")).await
    }

    /// Events after this one, as lines, for as long as they are read.
    pub(crate) async fn follow_events(&self, after: u64) -> Result<Lines, ClientError> {
        self.lines(&format!("/v1/events?follow=true&after={after}")).await
    }

    pub(crate) async fn stat(&self, file: &FileRef<'_>) -> Result<FileStat, ClientError> {
        self.client.get(&file.route("/files/stat")).await
    }

    pub(crate) async fn folder(&self, file: &FileRef<'_>) -> Result<Listing, ClientError> {
        self.client.get(&file.route("/files/list")).await
    }

    pub(crate) async fn make_folder(&self, file: &FileRef<'_>, mode: u32) -> Result<(), ClientError> {
        self.client.post(&format!("{}&mode={mode:o}", file.route("/files/mkdir")), &Empty {}).await
    }

    pub(crate) async fn read(&self, file: &FileRef<'_>) -> Result<Pieces, ClientError> {
        self.pieces(&file.route("/files")).await
    }

    pub(crate) async fn write<R>(
        &self,
        file: &FileRef<'_>,
        mode: Option<u32>,
        contents: R,
    ) -> Result<(), ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let mode = mode.map(|mode| format!("&mode={mode:o}")).unwrap_or_default();
        self.client.put_file(&format!("{}{mode}", file.route("/files")), contents).await
    }

    pub(crate) async fn doctor(&self) -> Result<Report, ClientError> {
        self.client.get("/v1/doctor").await
    }

    pub(crate) async fn health(&self) -> Result<Health, ClientError> {
        self.client.get("/healthz").await
    }

    /// Has the daemon reached over TCP, too.
    pub(crate) async fn listen(&self, address: SocketAddr) -> Result<Health, ClientError> {
        self.client.post("/v1/daemon/listen", &Listen { address }).await
    }

    /// The variables that lead E2B's SDKs to the daemon.
    pub(crate) async fn e2b(&self) -> Result<Vec<Variable>, ClientError> {
        self.client.get("/v1/daemon/e2b").await
    }

    pub(crate) async fn mcp(&self, opening: &Opening) -> Result<Spoken, ClientError> {
        self.client.speak_mcp("/v1/mcp", opening).await
    }

    /// Returns when the daemon is gone.
    pub(crate) async fn stop_daemon(self, home: &Path) -> Result<(), ClientError> {
        server::daemon::stop(home, self.client).await
    }

    async fn lines(&self, path: &str) -> Result<Lines, ClientError> {
        Ok(Lines { pieces: self.pieces(path).await?, buffer: Vec::new() })
    }

    async fn pieces(&self, path: &str) -> Result<Pieces, ClientError> {
        Ok(Box::new(self.client.get_stream(path).await?))
    }
}

/// What can be asked of a sandbox's life without further words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Pause,
    Resume,
    Stop,
    Start,
}

impl Change {
    fn path(self) -> &'static str {
        match self {
            Self::Pause => "/pause",
            Self::Resume => "/resume",
            Self::Stop => "/stop",
            Self::Start => "/start",
        }
    }
}

/// A file in a sandbox, and as whom it is reached.
#[derive(Clone, Debug)]
pub(crate) struct FileRef<'a> {
    pub(crate) which: &'a Which,
    pub(crate) path: Vec<u8>,
    pub(crate) user: Option<&'a str>,
}

impl FileRef<'_> {
    fn route(&self, verb: &str) -> String {
        let mut query = format!("{verb}?path={}", percent_encoded(&self.path));
        if let Some(user) = self.user {
            query += &format!("&user={}", percent_encoded(user.as_bytes()));
        }
        of(self.which, &query)
    }
}

/// There is no daemon, as opposed to one that cannot be talked to.
pub(crate) fn is_absent(error: &ClientError) -> bool {
    matches!(error, ClientError::NoDaemon { .. } | ClientError::Refused { .. })
}

/// Whether what was asked for is there, unless that cannot be told.
fn exists<T>(found: Result<T, ClientError>) -> Result<bool, ClientError> {
    match found {
        Ok(_) => Ok(true),
        Err(ClientError::Problem(problem)) if problem.code == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A body as it arrives.
pub(crate) type Pieces = Box<dyn Stream<Item = Result<Bytes, ClientError>> + Send + Unpin>;

/// A body of lines, one value each.
pub(crate) struct Lines {
    pieces: Pieces,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next line without its end; `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            match self.pieces.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Ok(Some(std::mem::take(&mut self.buffer))),
            }
        }
    }
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct CollectRequest {
    dry_run: bool,
}

#[derive(Serialize)]
struct ExtendRequest {
    ttl: Span,
}

#[derive(Serialize)]
struct SignalRequest {
    signal: SignalNumber,
}

fn of(which: &Which, rest: &str) -> String {
    // A `Which` holds only characters that stand for themselves in a path.
    format!("/v1/sandboxes/{which}{rest}")
}

fn from_query(from: Option<&Which>) -> String {
    from.map(|which| format!("&from={which}")).unwrap_or_default()
}

fn path_query(paths: &[Vec<u8>]) -> String {
    paths.iter().map(|path| format!("&path={}", percent_encoded(path))).collect()
}

pub(crate) fn percent_encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(*byte))
            }
            _ => write!(text, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[test]
    fn any_file_name_can_be_asked_for() {
        let which = "web".parse().unwrap();
        let file = FileRef { which: &which, path: b"/a b/\xff&c".to_vec(), user: Some("1:1") };
        assert_eq!(file.route("/files"), "/v1/sandboxes/web/files?path=/a%20b/%FF%26c&user=1%3A1");
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_were_cut() {
        let chunks = ["a", "b\nc", "d\n\ne"].map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
        let mut lines = Lines { pieces: Box::new(stream::iter(chunks)), buffer: Vec::new() };
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(seen, ["ab", "cd", "e"]);
    }
}
