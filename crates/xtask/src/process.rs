//! Other programs: started, waited for, and their failures named.

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// Where programs every user can reach live. The caller's own `PATH` may lead into a private home.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The program as every user of this machine finds it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    SYSTEM_PATH.iter().map(|folder| PathBuf::from(folder).join(program)).find(|path| path.is_file())
}

/// Runs it with the caller's output; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), ProcessError> {
    let status = command.status().map_err(|source| ProcessError::start(command, source))?;
    succeeded(command, status, &[])
}

/// Runs it silently; anything but success is an error that carries what it complained about.
pub(crate) fn quietly(command: &mut Command) -> Result<(), ProcessError> {
    output(command).map(drop)
}

/// What it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, ProcessError> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|source| ProcessError::start(command, source))?;
    succeeded(command, output.status, &output.stderr)?;
    Ok(output.stdout)
}

/// The first line it wrote to standard output, for versions and names.
pub(crate) fn line(command: &mut Command) -> Result<String, ProcessError> {
    let output = output(command)?;
    Ok(String::from_utf8_lossy(&output).lines().next().unwrap_or("").trim().to_owned())
}

pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn succeeded(command: &Command, status: ExitStatus, stderr: &[u8]) -> Result<(), ProcessError> {
    if status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let complaint = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
    Err(ProcessError::Failed { command: shown(command), status, complaint })
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("cannot start `{command}`")]
    Start { command: String, source: io::Error },
    #[error("cannot wait for `{command}`")]
    Wait { command: String, source: io::Error },
    /// The complaint is the program's own last line on standard error.
    #[error("`{command}` ended with {status}{complaint}")]
    Failed { command: String, status: ExitStatus, complaint: String },
}

impl ProcessError {
    pub(crate) fn start(command: &Command, source: io::Error) -> Self {
        Self::Start { command: shown(command), source }
    }

    pub(crate) fn wait(command: &Command, source: io::Error) -> Self {
        Self::Wait { command: shown(command), source }
    }
}
