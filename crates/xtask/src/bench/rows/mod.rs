//! The rows: one file each, one table of them all.

mod burst;
mod capture;
mod change;
mod client;
mod depth;
mod diff;
mod exec;
mod flat;
mod fork;
mod gateway;
pub(crate) mod idle;
mod rollback;
mod sdk;
mod site;
mod snapshot;
mod throwaway;
mod work;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::report::{Contender, Row, Series};
use super::sample::{Lane, settle, timed};
use super::{Bench, BenchError, Effort};
use crate::process;
use crate::rig::Stage;

pub(crate) struct Definition {
    pub(crate) name: &'static str,
    /// The least effort with which it is measured.
    effort: Effort,
    pub(crate) measure: fn(&Bench) -> Result<Vec<Row>, BenchError>,
}

/// Those that have zeno free inodes by the hundred thousand come last: `Rig::in_attic` says why.
const ROWS: &[Definition] = &[
    Definition { name: "throwaway", effort: Effort::Quick, measure: throwaway::measure },
    Definition { name: "burst", effort: Effort::Quick, measure: burst::measure },
    Definition { name: "exec", effort: Effort::Quick, measure: exec::measure },
    Definition { name: "snapshot", effort: Effort::Quick, measure: snapshot::measure },
    Definition { name: "rollback", effort: Effort::Quick, measure: rollback::measure },
    Definition { name: "diff", effort: Effort::Quick, measure: diff::measure },
    Definition { name: "depth", effort: Effort::Quick, measure: depth::measure },
    Definition { name: flat::BYTES, effort: Effort::Full, measure: flat::bytes },
    Definition { name: flat::FILES, effort: Effort::Full, measure: flat::files },
    Definition { name: "work", effort: Effort::Quick, measure: work::measure },
    Definition { name: gateway::SPEED, effort: Effort::Quick, measure: gateway::speed },
    Definition { name: gateway::LATENCY, effort: Effort::Quick, measure: gateway::latency },
    Definition { name: gateway::MANY, effort: Effort::Quick, measure: gateway::many },
    Definition { name: gateway::MEMORY, effort: Effort::Quick, measure: gateway::memory },
    Definition { name: "sdk", effort: Effort::Quick, measure: sdk::measure },
    Definition { name: "idle", effort: Effort::Full, measure: idle::measure },
    Definition { name: "fork", effort: Effort::Quick, measure: fork::measure },
    Definition { name: "capture", effort: Effort::Quick, measure: capture::measure },
    Definition { name: flat::WRITTEN, effort: Effort::Full, measure: flat::written },
];

/// Where a row stands among all.
pub(crate) fn place(name: &str) -> usize {
    ROWS.iter().position(|row| row.name == name).unwrap_or(ROWS.len())
}

/// The rows asked for by name, else all that this effort covers.
pub(crate) fn choose(
    names: &[String],
    skip: &[String],
    effort: Effort,
) -> Result<Vec<&'static Definition>, BenchError> {
    let find = |name: &String| {
        ROWS.iter().find(|row| row.name == name).ok_or_else(|| BenchError::NoSuchRow {
            name: name.clone(),
            all: ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })
    };
    if !names.is_empty() {
        return names.iter().map(find).collect();
    }
    let skipped = skip.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let is_wanted =
        |row: &&Definition| row.effort <= effort && !skipped.iter().any(|skip| skip.name == row.name);
    Ok(ROWS.iter().filter(is_wanted).collect())
}

/// A copy of the repository in which this script was run. Peers work there, so that nothing they do counts as a change of
/// the captured one.
fn outside(stage: &Stage, repository: &Path, script: &str) -> Result<PathBuf, BenchError> {
    let copy = stage.scratch.join("outside");
    process::quietly(Command::new("cp").arg("-a").arg(repository).arg(&copy))?;
    process::quietly(Command::new("sh").args(["-c", script]).current_dir(&copy))?;
    Ok(copy)
}

/// Copies a tree, every time to another place in the folder.
fn copy<'a>(label: String, options: &'a [&str], from: &'a Path, folder: PathBuf) -> Lane<'a> {
    let mut copies = 0;
    Lane::new(label, move || {
        copies += 1;
        settle();
        let to = folder.join(format!("copy{copies}"));
        timed(Command::new("cp").arg("-a").args(options).arg(from).arg(to))
    })
}

/// The first two are ours, one way and another; the others are compared with the first.
fn beside(series: &[Series], absent: &[Contender]) -> Vec<Contender> {
    let mut contenders = contenders(series, absent);
    contenders[1] = series[1].ours();
    contenders
}

/// Ours first, then the others with ours divided by theirs, then who is not here.
fn contenders(series: &[Series], absent: &[Contender]) -> Vec<Contender> {
    let (ours, theirs) = series.split_first().expect("ours is always measured");
    std::iter::once(ours.ours())
        .chain(theirs.iter().map(|series| series.against(ours)))
        .chain(absent.iter().cloned())
        .collect()
}
