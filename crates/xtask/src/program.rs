//! The product's program.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use serde::Deserialize;

use crate::files;
use crate::process::ProcessError;

/// What cargo says about one thing it built.
#[derive(Debug, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) reason: String,
    pub(crate) executable: Option<PathBuf>,
    pub(crate) manifest_path: Option<PathBuf>,
    pub(crate) profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Profile {
    pub(crate) test: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("it does not build: cargo ended with {status}")]
    Build { status: ExitStatus },
    #[error("cargo wrote a message that cannot be read")]
    Message(#[source] serde_json::Error),
    #[error("cargo built no program")]
    NoProgram,
}

/// Builds `zeno` and says where it is. Of `--package cli` it is what users get; of `--workspace` its dependencies are the
/// ones that the tests are made of, and are not compiled a second time with fewer features.
pub(crate) fn zeno(selection: &[&str]) -> Result<PathBuf, ProgramError> {
    let mut found = built(&[&["build", "--quiet", "--bin", "zeno"], selection].concat())?.into_iter();
    found.find_map(|artifact| artifact.executable).ok_or(ProgramError::NoProgram)
}

/// Runs a cargo command that builds; its progress goes to standard error, which stays the caller's.
pub(crate) fn built(words: &[&str]) -> Result<Vec<Artifact>, ProgramError> {
    let mut cargo = Command::new("cargo");
    cargo.args(words).arg("--message-format=json").current_dir(files::root()).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|source| ProcessError::start(&cargo, source))?;
    if !output.status.success() {
        return Err(ProgramError::Build { status: output.status });
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    messages.lines().map(|line| serde_json::from_str(line).map_err(ProgramError::Message)).collect()
}
