//! Commands in a running sandbox, and files.

use engine::init::wire::{Command, Request};
use model::exec::{Context, Exec, ExecRequest};
use model::files::FileOp;
use model::{Code, ExecId, Problem};
use tokio::net::UnixStream;

use super::store::Folder;
use super::{Native, Running, talk};

impl Native {
    /// Starts a command. The stream speaks the frames of `model::exec`: `Started`, then output, then `Ended`.
    pub async fn exec(
        &self,
        running: &Running,
        context: &Context,
        request: &ExecRequest,
    ) -> Result<UnixStream, Problem> {
        let command = decide(context, request);
        talk::open(&self.folder(running).0, &Request::Exec(Box::new(command))).await
    }

    /// Joins a command: replays nothing, streams what comes; an ended one answers `Ended` at once.
    pub async fn attach(&self, running: &Running, exec: ExecId) -> Result<UnixStream, Problem> {
        talk::open(&self.folder(running).0, &Request::Attach { exec }).await
    }

    pub async fn execs(&self, running: &Running) -> Result<Vec<Exec>, Problem> {
        talk::ask(&self.folder(running).0, &Request::Execs).await
    }

    pub async fn signal(&self, running: &Running, exec: ExecId, signal: i32) -> Result<(), Problem> {
        talk::ask(&self.folder(running).0, &Request::Signal { exec, signal }).await
    }

    /// Works on a file inside: see [`FileOp`] for what then goes over the stream.
    pub async fn file(
        &self,
        running: &Running,
        context: &Context,
        user: Option<&str>,
        op: &FileOp,
    ) -> Result<UnixStream, Problem> {
        if op.since() > running.version {
            return Err(older("do this with its files"));
        }
        let user = user.map(str::to_owned).or_else(|| context.user.clone());
        let home = context.home().map(|home| home.to_owned().into());
        talk::open(&self.folder(running).0, &Request::File { user, file: op.clone(), home }).await
    }

    /// Processes inside, init not counted.
    pub async fn processes(&self, running: &Running) -> Result<u64, Problem> {
        talk::ask(&self.folder(running).0, &Request::Processes).await
    }

    pub(super) fn folder(&self, running: &Running) -> Folder {
        Folder::of(&self.0.home, running.id)
    }
}

/// Of a sandbox whose init does not know what is asked of it.
pub(super) fn older(cannot: &str) -> Problem {
    let detail = format!("this sandbox was started by an older zeno, which cannot {cannot}");
    Problem::new(Code::NotReady, detail)
        .hint("`zeno stop` and `zeno start` give it a new init; its files stay")
}

/// The command as init runs it: the sandbox's context, changed by what was asked.
pub(super) fn decide(context: &Context, request: &ExecRequest) -> Command {
    let mut env = context.env.clone();
    env.extend(request.env.iter().cloned());
    let cwd = request.cwd.clone().unwrap_or_else(|| context.cwd.clone());
    Command {
        argv: request.argv.clone(),
        env,
        cwd: if cwd.0.is_empty() { "/".into() } else { cwd },
        user: request.user.clone().or_else(|| context.user.clone()),
        umask: request.umask.or(context.umask),
        tty: request.tty,
        stdin: request.stdin,
        timeout: request.timeout.map(|span| span.0.as_nanos() as u64),
        output_limit: request.output_limit.map(|size| size.0),
    }
}
