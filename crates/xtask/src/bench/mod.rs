//! `cargo xtask bench`: the numbers to reach, beside the peers of this machine, in one run.
//!
//! Never quotes a timing from inside: what is measured is what a user waits for.

mod chart;
mod machine;
mod page;
pub(crate) mod peers;
pub(crate) mod report;
pub(crate) mod rows;
pub(crate) mod sample;
mod stage;
pub(crate) mod stats;
mod table;

use std::io;
use std::path::PathBuf;
use std::process::Command;

use serde::Serialize;

use crate::files::{self, FileError};
use crate::process::{self, ProcessError};
use crate::rig::{RigError, scratch};
use crate::test::{SuiteError, target_folder};
use machine::Machine;
use report::Row;
pub(crate) use stage::Stage;

/// Measure zeno beside its peers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Few rounds and small trees: shows that it works, proves nothing
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// With the rows that take long: 1000 live sandboxes
    #[arg(long)]
    full: bool,
    /// Measure only these rows
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write the figures here instead of into docs/bench
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    #[command(flatten)]
    subject: Subject,
}

/// Which zeno is looked at, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Subject {
    /// Use this binary instead of a release build of this checkout
    #[arg(long, value_name = "PATH")]
    zeno: Option<PathBuf>,
    /// Work in this folder, on a disk
    #[arg(long, value_name = "FOLDER", default_value = scratch::PLACE)]
    scratch: PathBuf,
}

impl Subject {
    pub(crate) fn bench(&self, effort: Effort) -> Result<Bench, BenchError> {
        let zeno = match &self.zeno {
            Some(path) => {
                path.canonicalize().map_err(|source| BenchError::Zeno { path: path.clone(), source })?
            }
            None => build()?,
        };
        Ok(Bench { zeno, place: self.scratch.clone(), effort })
    }
}

/// What every row needs to know.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) zeno: PathBuf,
    pub(crate) place: PathBuf,
    pub(crate) effort: Effort,
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
}

/// All that one run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) effort: Effort,
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Row>,
    /// Rows that could not be measured, and why.
    pub(crate) failures: Vec<Failure>,
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
    let wanted = rows::choose(&args.only, effort)?;
    let bench = args.subject.bench(effort)?;
    let mut report =
        Report { effort, machine: Machine::look(&bench)?, rows: Vec::new(), failures: Vec::new() };
    for definition in wanted {
        match (definition.measure)(&bench) {
            Ok(rows) => report.rows.extend(rows),
            Err(error) => report.failures.push(Failure { row: definition.name, why: crate::chain(&error) }),
        }
    }
    print!("{}", table::table(&report));
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
    if args.quick || !args.only.is_empty() || !report.failures.is_empty() {
        return Ok(());
    }
    let folder = files::root().join("docs/bench");
    files::write(&folder.join("figures.json"), &json)?;
    files::write(&folder.join("chart.svg"), &chart::chart(&report.rows))?;
    files::write(&folder.join("README.md"), &page::page(report))?;
    println!("wrote docs/bench");
    Ok(())
}

fn build() -> Result<PathBuf, BenchError> {
    process::run(
        Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "cli"])
            .current_dir(files::root()),
    )?;
    Ok(target_folder()?.join("release/zeno"))
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
    Build(#[from] SuiteError),
    #[error("there is no zeno at {}", path.display())]
    Zeno { path: PathBuf, source: io::Error },
    #[error("cannot read the processor time of children")]
    Usage(#[source] io::Error),
    #[error("the configuration that `crun spec` wrote cannot be read")]
    Bundle(#[source] serde_json::Error),
    #[error("there is no row `{name}`; there are: {all}")]
    NoSuchRow { name: String, all: String },
    #[error("{count} rows could not be measured")]
    NotMeasured { count: usize },
}
