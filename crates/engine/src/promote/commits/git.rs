//! Running git, with nobody's settings but those of the repository it runs in; and asking it for everybody's.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::CommitsError;
use crate::sys;

/// The program.
#[derive(Clone, Debug)]
pub(in crate::promote) struct Git {
    program: PathBuf,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// Completes "git could not ...".
    pub(super) what: &'static str,
    /// The git folder it runs in.
    pub(super) folder: &'a Path,
    pub(super) arguments: &'a [&'a str],
}

/// One setting that holds a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::promote) struct Setting {
    /// Where it stands.
    pub(in crate::promote) file: PathBuf,
    pub(in crate::promote) name: String,
    pub(in crate::promote) value: PathBuf,
}

/// How a call ended, and what it said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Git {
    /// `None`: it is not installed. Not by PATH: that of a daemon is whatever the first caller's was.
    pub(in crate::promote) fn find() -> Option<Self> {
        let mut programs = FOLDERS.split(':').map(|folder| Path::new(folder).join("git"));
        programs.find(|program| program.is_file()).map(|program| Self { program })
    }

    /// Runs and returns what it printed.
    pub(super) fn ask(&self, call: Call<'_>, input: &[u8]) -> Result<Vec<u8>, CommitsError> {
        self.run(call, input).and_then(|answer| answer.ok(call.what))
    }

    /// Runs, whether it succeeds or not.
    pub(super) fn run(&self, call: Call<'_>, input: &[u8]) -> Result<Answer, CommitsError> {
        let stdin = filled(input).map_err(|source| CommitsError::Start { what: call.what, source })?;
        self.run_with(call, stdin)
    }

    /// The same, with this file to read from.
    pub(super) fn run_with(&self, call: Call<'_>, stdin: File) -> Result<Answer, CommitsError> {
        let command = self.command(call).map_err(|source| CommitsError::Start { what: call.what, source })?;
        heard(call.what, command, stdin)
    }

    /// Runs with these files at its ends.
    pub(super) fn pipe(&self, call: Call<'_>, stdin: File, stdout: File) -> Result<Answer, CommitsError> {
        let command = self.command(call).map_err(|source| CommitsError::Start { what: call.what, source })?;
        ended(call.what, command, stdin, stdout)
    }

    /// What settings say under the names that fit a pattern: those of the machine, of whoever has this home, and of the
    /// repository with this git folder. Paths in them are written out. Only here the settings of others are asked for, as
    /// they are, with our own rights to read them: nothing is run for it.
    pub(in crate::promote) fn settings(
        &self,
        what: &'static str,
        names: &str,
        folder: Option<&Path>,
        home: Option<&Path>,
    ) -> Result<Vec<Setting>, CommitsError> {
        let mut command = self.bare();
        for (name, path) in [("GIT_DIR", folder), ("HOME", home)] {
            if let Some(path) = path {
                command.env(name, path);
            }
        }
        command.args(["config", "--null", "--show-origin", "--type=path", "--get-regexp", names]);
        let stdin = filled(b"").map_err(|source| CommitsError::Start { what, source })?;
        let answer = heard(what, command, stdin)?;
        if answer.status.code() == Some(NO_SUCH_SETTING) {
            return Ok(Vec::new());
        }
        let said = answer.ok(what)?;
        let words: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
        let settings = words.chunks_exact(2).map(|pair| Setting::read(pair[0], pair[1]));
        settings.collect::<Option<_>>().ok_or(CommitsError::Answer { what })
    }

    fn command(&self, call: Call<'_>) -> io::Result<Command> {
        let mut command = self.bare();
        command
            .env("GIT_DIR", call.folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(call.arguments);
        // Root works in a repository as whoever owns it: what is written belongs to them, and git trusts it.
        let owner = std::fs::metadata(call.folder)?;
        if rustix::process::geteuid().is_root() && owner.uid() != 0 {
            command.uid(owner.uid()).gid(owner.gid());
        }
        Ok(command)
    }

    /// Without anybody's environment.
    fn bare(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", FOLDERS)
            .env("LC_ALL", "C")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Of a partial clone: what is missing is not fetched behind anybody's back.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_TERMINAL_PROMPT", "0")
            .current_dir("/");
        command
    }
}

impl Setting {
    /// From what git prints: where it stands, then its name and value.
    fn read(origin: &[u8], setting: &[u8]) -> Option<Self> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let end = setting.iter().position(|byte| *byte == b'\n')?;
        let name = std::str::from_utf8(&setting[..end]).ok()?.to_owned();
        Some(Self { file: path(origin.strip_prefix(b"file:")?), name, value: path(&setting[end + 1..]) })
    }
}

impl Answer {
    pub(super) fn ok(self, what: &'static str) -> Result<Vec<u8>, CommitsError> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let said = String::from_utf8_lossy(&self.stderr).trim().to_owned();
        Err(CommitsError::Refused { what, said })
    }
}

/// Runs, and keeps what it printed.
fn heard(what: &'static str, command: Command, stdin: File) -> Result<Answer, CommitsError> {
    let failed = |source| CommitsError::Start { what, source };
    let mut stdout = filled(b"").map_err(failed)?;
    let written = stdout.try_clone().map_err(failed)?;
    let mut answer = ended(what, command, stdin, written)?;
    stdout.seek(SeekFrom::Start(0)).map_err(failed)?;
    stdout.read_to_end(&mut answer.stdout).map_err(failed)?;
    Ok(answer)
}

/// Runs to its end.
fn ended(
    what: &'static str,
    mut command: Command,
    stdin: File,
    stdout: File,
) -> Result<Answer, CommitsError> {
    let failed = |source| CommitsError::Start { what, source };
    // Files in memory instead of pipes: nobody has to read while it runs.
    let mut said = filled(b"").map_err(failed)?;
    command.stdin(stdin).stdout(stdout).stderr(Stdio::from(said.try_clone().map_err(failed)?));
    let mut child = command.spawn().map_err(failed)?;
    let waiting = |source| CommitsError::Wait { what, source };
    let Some(status) = end_of(&mut child).map_err(waiting)? else {
        return Err(CommitsError::Slow { what });
    };
    let mut stderr = Vec::new();
    said.seek(SeekFrom::Start(0)).map_err(waiting)?;
    said.take(LONGEST_COMPLAINT).read_to_end(&mut stderr).map_err(waiting)?;
    Ok(Answer { status, stdout: Vec::new(), stderr })
}

/// `None`: it took too long, and was killed.
fn end_of(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let ended = rustix::io::retry_on_intr(|| poll(&mut ends, Some(&patience)))?;
    if ended == 0 {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok((ended > 0).then_some(status))
}

/// A file in memory that holds this, to be read from its beginning.
fn filled(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(sys::memory_file(c"zeno-git")?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.logAllRefUpdates=false",
    "core.fsync=all",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
];
const FOLDERS: &str =
    "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/home/linuxbrew/.linuxbrew/bin";
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// What `git config` exits with where there is none.
const NO_SUCH_SETTING: i32 = 1;
const LONGEST_COMPLAINT: u64 = 16 << 10;
