//! What can go wrong on this side of the socket, and what each failure is to the one who called.

use std::io;
use std::path::PathBuf;

use model::exec::Text;
use model::problem::Exit;
use model::{Code, Problem};
use server::client::ClientError;
use server::daemon::DaemonError;

use crate::render::words::count;
use crate::signal::SignalNumber;
use crate::verbs::mcp::Unfit;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot tell where zeno keeps its state")]
    NoHome,
    #[error("the daemon failed")]
    Daemon(#[source] DaemonError),
    #[error("the launcher failed")]
    Launcher(#[source] server::daemon::LaunchError),
    #[error("an errand failed")]
    Errand(#[source] server::daemon::ErrandError),
    #[error("cannot read standard input")]
    Stdin(#[source] io::Error),
    #[error("cannot find zeno's own program")]
    OwnProgram(#[source] io::Error),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot tell the current folder")]
    Cwd(#[source] io::Error),
    #[error("cannot read the umask")]
    Umask(#[source] io::Error),
    #[error("cannot use `{}` as the workspace", dir.display())]
    Workspace { dir: PathBuf, source: io::Error },
    #[error("your environment has no variable `{name}`, whose value is to be the secret")]
    NoSecret { name: String },
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    #[error("cannot write the answer as JSON")]
    Encode(#[source] serde_json::Error),
    #[error("cannot understand the daemon's answer")]
    Decode(#[source] serde_json::Error),
    #[error("cannot understand a line of the log")]
    LogBytes(#[source] server::line::BadOutput),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error("cannot set up the terminal")]
    Terminal(#[source] io::Error),
    #[error("cannot read the answer from the terminal")]
    Confirm(#[source] io::Error),
    #[error("the conversation broke off before the command had ended")]
    BrokenOff,
    #[error("the daemon sent a frame that only clients send")]
    WrongFrame,
    #[error("this would remove {}, and nobody is there to confirm it", count(*sandboxes, "sandbox", "sandboxes"))]
    Unconfirmed { sandboxes: u64 },
    #[error("a promotion that goes on is what it is: only --to, --dry-run and --actor can be said of it")]
    PromotedAlready,
    #[error("ZENO_ACTOR is `{text}`, which says not who asks")]
    Nobody { text: String },
    #[error("`{word}` may mean a sandbox or snapshot, and a path that `{sandbox}` changed")]
    OtherOrPath { sandbox: String, word: String },
    #[error(
        "there is no sandbox, snapshot or candidate `{word}`, and no such path here or among what `{sandbox}` changed"
    )]
    NeitherOtherNorPath { sandbox: String, word: String },
    #[error("there is no candidate `{named}` with a sandbox of its own")]
    NoCandidate { named: String },
    #[error("cannot copy {what}")]
    CopyShape { what: &'static str },
    #[error("cannot read `{}`", path.display())]
    ReadHost { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`", path.display())]
    WriteHost { path: PathBuf, source: io::Error },
    #[error("`{}` failed in the sandbox for `{}`", program.display(), path.display())]
    Inside { program: Text, path: Text },
    #[error("the sandbox lists a file whose name is none: {name:?}")]
    ForeignName { name: Text },
    #[error("cannot tell where your home is")]
    NoUserHome,
    #[error("left `{}` as it is", path.display())]
    ClientConfig { path: PathBuf, snippet: String, source: Box<Unfit> },
    #[error("this would change `{}`, and nobody is there to confirm it", path.display())]
    UnconfirmedConfig { path: PathBuf },
    #[error("`{}` has changed since it was shown; nothing was written", path.display())]
    ConfigMovedOn { path: PathBuf },
    #[error("cannot make a folder for the demonstration")]
    DemoFolder(#[source] io::Error),
    #[error("cannot start `zeno {line}`")]
    DemoStart { line: String, source: io::Error },
    #[error("`zeno {line}` failed{}", code.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    DemoStep { line: String, code: Option<i32> },
}

impl Failure {
    /// The one form in which every face shows what went wrong.
    pub(crate) fn problem(&self) -> Problem {
        if let Self::Client(ClientError::Problem(problem)) = self {
            return problem.clone();
        }
        let problem = Problem::from_error(self.code(), self);
        match self {
            Self::NoHome => {
                problem.hint("set HOME, or ZENO_HOME to the folder where zeno may keep its state")
            }
            Self::NoSecret { name } => problem.hint(format!("set it first: export {name}=...")),
            Self::Unconfirmed { .. } => problem.hint("zeno destroy --all --yes"),
            Self::Nobody { .. } => {
                problem.hint("set it to adm (a person), agt (an agent) or atm (automation), or unset it")
            }
            Self::OtherOrPath { sandbox, word } => problem
                .hint(format!("compare the two: `zeno diff {sandbox} --with {word}`"))
                .hint(format!("or show that path: `zeno diff {sandbox} -- {word}`")),
            Self::NeitherOtherNorPath { sandbox, word } => problem
                .hint("see which there are: `zeno list`, `zeno snapshots`")
                .hint(format!("or, if a path is meant, say so: `zeno diff {sandbox} -- {word}`")),
            Self::NoCandidate { .. } => problem.hint("see which there were: zeno races --json"),
            Self::CopyShape { .. } => problem.hint("zeno cp --help"),
            Self::NoUserHome => problem.hint("set HOME"),
            Self::ClientConfig { snippet, .. } => {
                problem.hint(format!("put this into it by hand:\n{}", snippet.trim_end()))
            }
            Self::ConfigMovedOn { .. } => problem.hint("run it again"),
            Self::UnconfirmedConfig { .. } => problem.hint("pass --yes, or --print to only see it"),
            Self::Client(_) => problem.hint("zeno doctor"),
            _ => problem,
        }
    }

    /// What the process exits with; nothing that is a reader's own decision to stop reading is an error.
    pub(crate) fn exit(&self) -> u8 {
        if self.is_broken_pipe() { broken_pipe_exit() } else { self.problem().code.exit() as u8 }
    }

    /// The same for verbs that exit with the code of a command.
    pub(crate) fn command_exit(&self) -> u8 {
        match self.problem().code {
            _ if self.is_broken_pipe() => broken_pipe_exit(),
            Code::ProgramNotFound => 127,
            Code::ProgramNotExecutable => 126,
            _ => ZENO_FAILED,
        }
    }

    /// Whoever read our output went away, as `head` does.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn code(&self) -> Code {
        match self {
            Self::Client(ClientError::Problem(problem)) => problem.code,
            Self::NoHome
            | Self::CopyShape { .. }
            | Self::PromotedAlready
            | Self::NoUserHome
            | Self::ClientConfig { .. }
            | Self::Nobody { .. }
            | Self::NoSecret { .. }
            | Self::OtherOrPath { .. } => Code::BadRequest,
            Self::NeitherOtherNorPath { .. } | Self::NoCandidate { .. } => Code::NotFound,
            Self::Workspace { .. } => Code::WorkspaceGone,
            Self::ReadHost { source, .. } | Self::WriteHost { source, .. }
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Code::NotFound
            }
            Self::Unconfirmed { .. } | Self::UnconfirmedConfig { .. } => Code::Refused,
            Self::ConfigMovedOn { .. } => Code::Conflict,
            Self::Client(_)
            | Self::Daemon(_)
            | Self::Launcher(_)
            | Self::Errand(_)
            | Self::Stdin(_)
            | Self::OwnProgram(_)
            | Self::Runtime(_)
            | Self::Cwd(_)
            | Self::Umask(_)
            | Self::Output(_)
            | Self::Encode(_)
            | Self::Decode(_)
            | Self::LogBytes(_)
            | Self::Signals(_)
            | Self::Terminal(_)
            | Self::Confirm(_)
            | Self::BrokenOff
            | Self::WrongFrame
            | Self::ReadHost { .. }
            | Self::WriteHost { .. }
            | Self::Inside { .. }
            | Self::ForeignName { .. }
            | Self::DemoFolder(_)
            | Self::DemoStart { .. }
            | Self::DemoStep { .. } => Code::Internal,
        }
    }
}

/// What `run` and `exec` exit with when zeno, not the command, failed.
pub(crate) const ZENO_FAILED: u8 = 125;

pub(crate) const DONE: u8 = Exit::Done as u8;

/// As a shell reports a process that SIGPIPE ended.
fn broken_pipe_exit() -> u8 {
    128 + u8::try_from(SignalNumber::PIPE.0).expect("SIGPIPE is 13")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(failure: &Failure, exit: u8) {
        assert_eq!(failure.exit(), exit, "{failure:?}");
    }

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        let problem = |code| Failure::Client(ClientError::Problem(Problem::new(code, "x")));
        check(&problem(Code::BadRequest), 2);
        check(&problem(Code::NameTaken), 2);
        check(&problem(Code::NotReady), 3);
        check(&problem(Code::LimitUnenforceable), 4);
        check(&problem(Code::NotFound), 6);
        check(&problem(Code::Internal), 7);
        check(&Failure::Unconfirmed { sandboxes: 3 }, 4);
        check(&Failure::CopyShape { what: "x" }, 2);
        check(&Failure::ReadHost { path: "a".into(), source: io::ErrorKind::NotFound.into() }, 6);
        check(&Failure::ReadHost { path: "a".into(), source: io::ErrorKind::PermissionDenied.into() }, 7);
        check(&Failure::Output(io::ErrorKind::BrokenPipe.into()), 141);
        check(&Failure::Output(io::ErrorKind::StorageFull.into()), 7);
        check(&Failure::BrokenOff, 7);
    }
}
