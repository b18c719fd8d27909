//! `cargo xtask soak`: what only shows after minutes. Each prints its figures and fails on the first wrong answer.

mod bombs;
mod churn;
mod crowd;
mod freshness;
mod kills;

use std::process::ExitStatus;
use std::time::Instant;

use crate::bench::BenchError;
use crate::files::FileError;
use crate::process::ProcessError;
use crate::rig::traces::Traces;
use crate::rig::{Rig, RigError, Subject, interrupt};

/// Run the slow trials
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these: churn, kills, freshness, crowd, bombs
    names: Vec<String>,
    #[command(flatten)]
    subject: Subject,
}

type Trial = (&'static str, fn(&Rig) -> Result<(), SoakError>);

const TRIALS: &[Trial] = &[
    ("churn", churn::churn),
    ("kills", kills::kills),
    ("freshness", freshness::freshness),
    ("crowd", crowd::crowd),
    ("bombs", bombs::bombs),
];

pub(crate) fn soak(args: &Args) -> Result<(), SoakError> {
    if let Some(name) = args.names.iter().find(|name| !TRIALS.iter().any(|(known, _)| known == name)) {
        return Err(SoakError::NoSuchTrial { name: name.clone() });
    }
    let rig = args.subject.rig()?;
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|asked| asked == name);
    let mut failed = Vec::new();
    for (name, trial) in TRIALS.iter().filter(|(name, _)| wanted(name)) {
        let start = Instant::now();
        let outcome = trial(&rig);
        interrupt::check()?;
        let seconds = start.elapsed().as_secs();
        match outcome {
            Ok(()) => println!("{name}: passed after {seconds} s"),
            Err(error) => {
                println!("{name}: FAILED after {seconds} s: {}", crate::chain(&error));
                failed.push(*name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(SoakError::Failed { trials: failed.join(", ") }) }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SoakError {
    #[error("there is no trial `{name}`; there are: churn, kills, freshness, crowd, bombs")]
    NoSuchTrial { name: String },
    #[error("failed: {trials}")]
    Failed { trials: String },
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(transparent)]
    Rig(#[from] RigError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{bar}")]
    Missed { bar: String },
    #[error("something was left behind: {before} before, {after} after")]
    LeftBehind { before: Traces, after: Traces },
    #[error("round {round} showed `{seen}` where the file held `{written}`")]
    Stale { round: usize, seen: String, written: String },
    #[error("{bomb}: zeno did not let it run: {status}")]
    NotRun { bomb: &'static str, status: ExitStatus },
    #[error("{bomb}: the daemon no longer answers")]
    DaemonGone { bomb: &'static str, source: RigError },
    #[error("{bomb}: a process on the host took {millis} ms to start")]
    HostNoticed { bomb: &'static str, millis: u128 },
}
