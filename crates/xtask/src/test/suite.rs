//! The suite: built once, run by cargo for the caller, and known binary by binary for everyone else.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::tally::Tally;
use crate::files;
use crate::process::{self, ProcessError};
use crate::program::{self, Artifact, ProgramError};
use crate::sdks::Sdks;

/// Tells the tests whether limits are to be enforced (`usable`) or refused (`none`) in this form of the suite.
pub(super) const CGROUPS: &str = "ZENO_TEST_CGROUPS";

#[derive(Debug)]
pub(super) struct Suite {
    pub(super) binaries: Vec<TestBinary>,
    /// The program under test.
    pub(super) zeno: PathBuf,
    pub(super) only: Option<String>,
    /// The clients of others, where tests of this selection use them.
    pub(super) sdks: Option<Sdks>,
    /// What cargo is to build and run.
    selection: Vec<String>,
}

#[derive(Debug)]
pub(super) struct TestBinary {
    pub(super) executable: PathBuf,
    /// `crates/engine`: where cargo would run it.
    pub(super) folder: PathBuf,
}

impl Suite {
    /// All tests, or those of one file among the program's own.
    pub(super) fn build(
        only: Option<String>,
        suite: Option<&str>,
        sdks: Option<Sdks>,
    ) -> Result<Self, SuiteError> {
        let zeno = program::zeno(&["--workspace"])?;
        let selection = match suite {
            Some(suite) => ["--package", "cli", "--test", suite].map(str::to_owned).to_vec(),
            None => vec!["--workspace".to_owned()],
        };
        let words = ["test", "--no-run"].into_iter().chain(selection.iter().map(String::as_str));
        let built = program::built(&words.collect::<Vec<_>>())?;
        let binaries = built.into_iter().map(test_binary).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { binaries: binaries.into_iter().flatten().collect(), zeno, only, sdks, selection })
    }

    /// As the caller, with nextest if it is there.
    pub(super) fn run_here(&self, is_root: bool, tally: &mut Tally) -> Result<(), SuiteError> {
        let has_nextest = process::quietly(&mut cargo(&["nextest", "--version"])).is_ok();
        let mut words: Vec<&str> = if has_nextest {
            vec![
                "nextest",
                "run",
                "--no-fail-fast",
                "--retries",
                "1",
                "--success-output",
                "immediate",
                "--failure-output",
                "immediate-final",
            ]
        } else {
            vec!["test", "--no-fail-fast"]
        };
        words.extend(self.selection.iter().map(String::as_str));
        words.extend(self.only.as_deref());
        if has_nextest {
            words.push("--no-tests=pass");
        } else {
            // Output of tests that passed, because a skipped test passes.
            words.extend(["--", "--show-output"]);
        }
        let status = watch(
            "cargo",
            &words,
            |command| {
                if is_root {
                    command.env(CGROUPS, "usable");
                }
                command.envs(self.sdks.iter().flat_map(Sdks::variables));
                command.env("ZENO_BIN", &self.zeno).env("INSTA_UPDATE", "no")
            },
            tally,
        )?;
        // A failure that is not in the count is one that ended a whole binary.
        if !status.success() && tally.failed == 0 {
            tally.broken.push(format!("cargo {} ({status})", words[0]));
        }
        Ok(())
    }
}

/// Runs a command, shows every line it writes and counts what the lines say.
pub(super) fn watch(
    program: &str,
    words: &[&str],
    prepare: impl Fn(&mut Command) -> &mut Command,
    tally: &mut Tally,
) -> Result<ExitStatus, SuiteError> {
    // The shell merges both streams in the order they are written.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 2>&1", "sh", program]).args(words);
    command.current_dir(files::root()).stdin(Stdio::null()).stdout(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn().map_err(|source| ProcessError::start(&command, source))?;
    let mut output = child.stdout.take().expect("piped above");
    let (mut piece, mut pending) = ([0; 1 << 16], Vec::new());
    let status = loop {
        if is_readable(&output).map_err(SuiteError::Output)? {
            let length = output.read(&mut piece).map_err(SuiteError::Output)?;
            pending.extend_from_slice(&piece[..length]);
            let whole = if length == 0 { pending.len() } else { after_last_line(&pending) };
            for line in pending.drain(..whole).as_slice().split_inclusive(|byte| *byte == b'\n') {
                let text = String::from_utf8_lossy(line);
                print!("{text}");
                tally.read(&text);
            }
            if length == 0 {
                break child.wait();
            }
        } else if let Some(status) =
            child.try_wait().map_err(|source| ProcessError::wait(&command, source))?
        {
            // What a failed test left running holds the other end, maybe for ever.
            println!("== something outlives its test and still holds the output");
            break Ok(status);
        }
    };
    tally.end_run();
    Ok(status.map_err(|source| ProcessError::wait(&command, source))?)
}

fn is_readable(output: &ChildStdout) -> io::Result<bool> {
    let patience = Timespec { tv_sec: 2, tv_nsec: 0 };
    match poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&patience)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn after_last_line(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(files::root());
    command
}

fn test_binary(message: Artifact) -> Result<Option<TestBinary>, SuiteError> {
    let is_test = message.profile.is_some_and(|profile| profile.test);
    match (message.executable, message.manifest_path) {
        (Some(executable), Some(manifest)) if is_test && message.reason == "compiler-artifact" => {
            let folder = manifest.parent().and_then(|folder| folder.strip_prefix(files::root()).ok());
            let folder = folder.ok_or_else(|| SuiteError::Foreign { manifest: manifest.clone() })?.to_owned();
            Ok(Some(TestBinary { executable, folder }))
        }
        _ => Ok(None),
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SuiteError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("could not build the program or its tests")]
    Build(#[from] ProgramError),
    #[error("{} is outside the workspace", manifest.display())]
    Foreign { manifest: PathBuf },
    #[error("cannot read the tests' output")]
    Output(#[source] io::Error),
}
