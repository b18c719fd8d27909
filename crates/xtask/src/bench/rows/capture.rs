//! The first capture of a workspace beside `cp -a`, and the capture of one that did not change.

use std::path::Path;
use std::process::Command;

use super::contenders;
use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, Sample, interleave, timed};
use crate::bench::{Bench, BenchError, Effort, Stage};
use crate::files;
use crate::rig::Zeno;

const NAME: &str = "capture";
const ROUNDS: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let sizes: &[usize] = if bench.effort == Effort::Quick { &[10_000] } else { &[10_000, 100_000] };
    sizes.iter().map(|files| measure_size(bench, *files)).collect()
}

fn measure_size(bench: &Bench, count: usize) -> Result<Row, BenchError> {
    let stage = Stage::new(bench)?;
    let repository = stage.repository("repository", count)?;
    let nowhere = stage.scratch.join("nowhere");
    files::make_folder(&nowhere)?;
    // Once, so that nobody reads from a cold disk.
    timed(&mut stage.zeno.run(&repository, &["true"]))?;

    let mut homes = 0;
    let first = || {
        homes += 1;
        let zeno = Zeno::new(&bench.zeno, stage.scratch.join(&format!("home{homes}")));
        let sample = first_capture(&zeno, &repository, &nowhere);
        zeno.stop()?;
        files::remove_tree(zeno.home())?;
        sample
    };
    let copy = stage.scratch.join("copy");
    let copied = || {
        settle();
        let sample = timed(Command::new("cp").arg("-a").arg(&repository).arg(&copy));
        files::remove_tree(&copy)?;
        sample
    };
    let again = || timed(&mut stage.zeno.run(&repository, &["true"]));
    let mut lanes = [
        Lane::new("zeno run, first", first),
        Lane::new("cp -a", copied),
        Lane::new("zeno run, unchanged", again),
    ];
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    let bars = vec![
        Bar::at_most("first capture at least as fast as cp -a", 1.0, series[0].ratio_to(&series[1]).median),
        Bar::at_most("unchanged: at most 1/20 of cp -a", 0.05, series[2].ratio_to(&series[1]).median),
    ];
    let title =
        format!("first capture of {count} files, and again unchanged (each a whole `zeno run -- true`)");
    let contenders = contenders(&series, &[]);
    Ok(Row { name: NAME, title, unit: Unit::Seconds, contenders, bars, notes: Vec::new() })
}

/// With a daemon that runs but has never seen the repository.
fn first_capture(zeno: &Zeno, repository: &Path, nowhere: &Path) -> Result<Sample, BenchError> {
    timed(&mut zeno.run(nowhere, &["true"]))?;
    settle();
    let before = zeno.cpu()?;
    let sample = timed(&mut zeno.run(repository, &["true"]))?;
    Ok(Sample { cpu: sample.cpu + zeno.cpu()?.saturating_sub(before), ..sample })
}

/// What the one before left to be written must not be paid for by the next.
fn settle() {
    rustix::fs::sync();
}
