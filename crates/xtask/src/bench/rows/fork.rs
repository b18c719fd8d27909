//! A fork of a sandbox beside what people do who want the same tree twice: copy it, with and without shared blocks, or
//! have git check it out again.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::site::{Caller, Site, Verb};
use super::{beside, change, copy, outside};
use crate::bench::report::{Bar, Contender, Row, Unit};
use crate::bench::sample::{Lane, interleave, settle, timed};
use crate::bench::volume::Volume;
use crate::bench::{Bench, BenchError};
use crate::process;
use crate::rig::{Rig, Stage, tree};

const NAME: &str = "fork";
/// Fewer than elsewhere: the copies take long, and the more files, the longer.
const FILES: usize = 5000;
const CHANGED: usize = 100;
const ROUNDS: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    // Before zeno starts: it looks at what is mounted.
    let (volumes, absent) = volumes(&bench.rig)?;
    let count = bench.effort.size(FILES);
    let (stage, repository) = Stage::with_repository(&bench.rig, count)?;
    let script = change::files(CHANGED);
    let outside = outside(&stage, &repository, &script)?;
    let called = Site::new(&stage.zeno, &repository, "true > base")?;
    let started = Site::new(&stage.zeno, &repository, "true > base")?;
    let sources: Vec<PathBuf> = volumes.iter().map(|volume| volume.path().join("source")).collect();

    let mut lanes = vec![
        Lane::new("zeno, API", || called.measure(Verb::Fork, Caller::Api, &script)),
        Lane::new("zeno fork", || started.measure(Verb::Fork, Caller::Program, &script)),
        copy("cp -a".to_owned(), &[], &outside, stage.scratch.path().to_owned()),
        check_out(&outside, stage.scratch.path().to_owned()),
    ];
    for (volume, source) in volumes.iter().zip(&sources) {
        process::quietly(Command::new("cp").arg("-a").args([&outside, source]))?;
        let label = reflink(volume.kind);
        lanes.push(copy(label, &["--reflink=always"], source, volume.path().to_owned()));
    }
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let bars = vec![
        Bar::at_most("no slower than cp -a", 1.0, series[0].ratio_to(&series[2]).median),
        Bar::at_most("no slower than git worktree add", 1.0, series[0].ratio_to(&series[3]).median),
    ];
    let notes = vec![
        "each fork is of a sandbox that has just changed these files, so that they have to be sealed first".to_owned(),
        "git's worktree has the committed files only, the copies have all; removing them, and the fork, is not measured".to_owned(),
    ];
    let title = format!("fork of a {count}-file repository with {CHANGED} changed files");
    let contenders = beside(&series, &absent);
    Ok(vec![Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }])
}

/// File systems that share blocks between files, and those that cannot be had.
fn volumes(rig: &Rig) -> Result<(Vec<Volume>, Vec<Contender>), BenchError> {
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for kind in ["btrfs", "xfs"] {
        match Volume::mount(rig, kind) {
            Ok(volume) => here.push(volume),
            Err(error @ (BenchError::NotRoot | BenchError::Process(_))) => {
                absent.push(Contender::Absent { label: reflink(kind), why: crate::chain(&error) });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((here, absent))
}

fn reflink(kind: &str) -> String {
    format!("cp --reflink, {kind}")
}

fn check_out(repository: &Path, folder: PathBuf) -> Lane<'_> {
    let mut trees = 0;
    Lane::new("git worktree add", move || {
        trees += 1;
        settle();
        let to = folder.join(format!("worktree{trees}"));
        timed(tree::git(repository).args(["worktree", "add", "--quiet", "--detach"]).arg(to))
    })
}
