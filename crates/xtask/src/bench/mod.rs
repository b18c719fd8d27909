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

use serde::{Deserialize, Serialize};

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
    /// Put these rows in the place of those published before; the page says when each was measured
    #[arg(long, requires = "only", conflicts_with_all = ["quick", "json"])]
    replace: bool,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) effort: Effort,
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Measured>,
    /// Rows that could not be measured, and why.
    pub(crate) failures: Vec<Failure>,
    /// Rows that were not asked for.
    pub(crate) skipped: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Absent if it was measured with the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) apart: Option<Apart>,
}

/// When and of what a row was measured that is newer than the rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Apart {
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) load: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) row: String,
    pub(crate) why: String,
}

impl Report {
    /// With the rows of another run in the place of its own.
    fn with(mut self, newer: Self) -> Self {
        let is_newer = |name: &str| {
            newer.rows.iter().any(|measured| measured.row.name == name)
                || newer.failures.iter().any(|failure| failure.row == name)
        };
        self.rows.retain(|measured| !is_newer(&measured.row.name));
        self.failures.retain(|failure| !is_newer(&failure.row));
        self.skipped.retain(|name| !is_newer(name));
        self.rows.extend(newer.rows);
        self.failures.extend(newer.failures);
        self.rows.sort_by_key(|measured| rows::place(&measured.row.name));
        self
    }
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
    let apart = args.replace.then(|| report.machine.apart());
    for definition in wanted {
        let measured = (definition.measure)(&bench);
        // A row that was broken off is not one that cannot be measured.
        interrupt::check()?;
        match measured {
            Ok(rows) => {
                rows.iter().for_each(|row| print!("{}", table::table(row)));
                report.rows.extend(rows.into_iter().map(|row| Measured { row, apart: apart.clone() }));
            }
            Err(error) => {
                let failure = Failure { row: definition.name.to_owned(), why: crate::chain(&error) };
                print!("{}", table::failed(&failure));
                report.failures.push(failure);
            }
        }
    }
    let failures = report.failures.len();
    save(args, report)?;
    if failures == 0 { Ok(()) } else { Err(BenchError::NotMeasured { count: failures }) }
}

/// A quick or partial run replaces nothing that is published, unless asked to.
fn save(args: &Args, report: Report) -> Result<(), BenchError> {
    let json = |report: &Report| serde_json::to_string_pretty(report).expect("plain data") + "\n";
    if let Some(path) = &args.json {
        return Ok(files::write(path, &json(&report))?);
    }
    let is_partial = args.quick || !args.only.is_empty();
    if is_partial && !args.replace {
        return Ok(());
    }
    let folder = files::root().join("docs/bench");
    let figures = folder.join("figures.json");
    let report = if args.replace {
        let published = serde_json::from_str(&files::read(&figures)?);
        let published: Report =
            published.map_err(|source| BenchError::Figures { path: figures.clone(), source })?;
        published.with(report)
    } else {
        report
    };
    files::write(&figures, &json(&report))?;
    files::write(&folder.join("chart.svg"), &chart::chart(report.rows.iter().map(|measured| &measured.row)))?;
    files::write(&folder.join("README.md"), &page::page(&report))?;
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
    #[error("the figures at {} are not those of this program; publish them all anew with `--full`", path.display())]
    Figures { path: PathBuf, source: serde_json::Error },
    #[error("the configuration that `crun spec` wrote cannot be read")]
    Bundle(#[source] serde_json::Error),
    #[error("there is no row `{name}`; there are: {all}")]
    NoSuchRow { name: String, all: String },
    #[error("{count} rows could not be measured")]
    NotMeasured { count: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Report {
        let figures = files::root().join("docs/bench/figures.json");
        serde_json::from_str(&files::read(&figures).unwrap()).unwrap()
    }

    #[test]
    fn a_row_measured_apart_takes_the_place_of_the_published_one() {
        let before = published();
        let names = |report: &Report| -> Vec<String> {
            report.rows.iter().map(|measured| measured.row.name.clone()).collect()
        };
        let mut newer = published();
        let apart = Apart { date: "today".to_owned(), commit: "abc".to_owned(), load: "0.1".to_owned() };
        newer.rows.retain(|measured| measured.row.name == "exec");
        for measured in &mut newer.rows {
            measured.apart = Some(apart.clone());
        }
        newer.failures = vec![Failure { row: "burst".to_owned(), why: "it broke".to_owned() }];
        let merged = published().with(newer);
        let mut expected = names(&before);
        expected.retain(|name| name != "burst");
        assert_eq!(names(&merged), expected);
        assert!(merged.failures.iter().any(|failure| failure.row == "burst"));
        let page = page::page(&merged);
        let apart = "Measured apart from the rest: on today, at commit abc, load 0.1 at the start.";
        assert_eq!(page.matches(apart).count(), 1);
    }
}
