//! `cargo xtask bench`: the numbers to reach, beside the peers of this machine, in one run.
//!
//! Never quotes a timing from inside: what is measured is what a user waits for.

mod chart;
mod guests;
mod machine;
mod page;
pub(crate) mod peers;
pub(crate) mod report;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod stats;
mod table;
mod volume;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::files::{self, FileError};
use crate::packages::NeedsError;
use crate::process::ProcessError;
use crate::rig::{Rig, RigError, Scratch, Subject, interrupt};
pub(crate) use guests::Guests;
use guests::Invitation;
use machine::Machine;
use report::Row;

/// Measure zeno beside its peers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Few rounds and small trees: shows that it works, proves nothing
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// With the rows that take long: 1000 live sandboxes, 100k files, 1 GiB changed
    #[arg(long)]
    full: bool,
    /// Measure only these rows
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measure all but these; the page says so
    #[arg(long, value_name = "NAME", conflicts_with = "only")]
    skip: Vec<String>,
    /// Write the figures here instead of into docs/bench
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    #[command(flatten)]
    invitation: Invitation,
    #[command(flatten)]
    subject: Subject,
}

/// What every row needs to know.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) rig: Rig,
    pub(crate) effort: Effort,
    pub(crate) guests: Guests,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    Quick,
    Usual,
    Full,
}

impl Effort {
    /// This many, or a tenth for a look.
    pub(crate) fn rounds(self, usual: usize) -> usize {
        if self == Self::Quick { usual.div_ceil(10).max(3) } else { usual }
    }

    /// So large, or a tenth of it for a look.
    pub(crate) fn size(self, usual: usize) -> usize {
        if self == Self::Quick { usual / 10 } else { usual }
    }
}

/// All that one run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) effort: Effort,
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Row>,
    /// Rows that could not be measured, and why.
    pub(crate) failures: Vec<Failure>,
    /// Rows that were not asked for.
    pub(crate) skipped: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) row: &'static str,
    pub(crate) why: String,
}

pub(crate) fn bench(args: &Args) -> Result<(), BenchError> {
    let effort = match (args.quick, args.full) {
        (true, _) => Effort::Quick,
        (false, false) => Effort::Usual,
        (false, true) => Effort::Full,
    };
    let wanted = rows::choose(&args.only, &args.skip, effort)?;
    let rig = args.subject.rig()?;
    // Not in the attic: podman wants short paths.
    let guests = args.invitation.guests(&rig)?;
    let attic = Scratch::new(&rig)?;
    let rig = rig.in_attic(&attic);
    let bench = Bench { rig, effort, guests };
    let (machine, skipped) = (Machine::look(&bench)?, args.skip.clone());
    let mut report = Report { effort, machine, rows: Vec::new(), failures: Vec::new(), skipped };
    for definition in wanted {
        let measured = (definition.measure)(&bench);
        // A row that was broken off is not one that cannot be measured.
        interrupt::check()?;
        match measured {
            Ok(rows) => {
                rows.iter().for_each(|row| print!("{}", table::table(row)));
                report.rows.extend(rows);
            }
            Err(error) => {
                let failure = Failure { row: definition.name, why: crate::chain(&error) };
                print!("{}", table::failed(&failure));
                report.failures.push(failure);
            }
        }
    }
    save(args, &report)?;
    if report.failures.is_empty() {
        Ok(())
    } else {
        Err(BenchError::NotMeasured { count: report.failures.len() })
    }
}

/// A quick or partial run never replaces the published figures.
fn save(args: &Args, report: &Report) -> Result<(), BenchError> {
    let json = serde_json::to_string_pretty(report).expect("plain data") + "\n";
    if let Some(path) = &args.json {
        return Ok(files::write(path, &json)?);
    }
    if args.quick || !args.only.is_empty() {
        return Ok(());
    }
    let folder = files::root().join("docs/bench");
    files::write(&folder.join("figures.json"), &json)?;
    files::write(&folder.join("chart.svg"), &chart::chart(&report.rows))?;
    files::write(&folder.join("README.md"), &page::page(report))?;
    println!("wrote docs/bench");
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Rig(#[from] RigError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Needs(#[from] NeedsError),
    #[error("there is no busybox to make an image of")]
    NoBusybox,
    #[error("only root can mount an image")]
    NotRoot,
    #[error("cannot make an image of a file system at {}", path.display())]
    Image { path: PathBuf, source: io::Error },
    #[error("cannot make a place to mount at in {}", place.display())]
    MountPoint { place: PathBuf, source: io::Error },
    #[error("cannot read the processor time of children")]
    Usage(#[source] io::Error),
    #[error("the shell inside did not tell its times: {told}")]
    Times { told: String },
    #[error("the configuration that `crun spec` wrote cannot be read")]
    Bundle(#[source] serde_json::Error),
    #[error("there is no row `{name}`; there are: {all}")]
    NoSuchRow { name: String, all: String },
    #[error("{count} rows could not be measured")]
    NotMeasured { count: usize },
}
