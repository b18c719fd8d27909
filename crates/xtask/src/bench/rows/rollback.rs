//! Taking a sandbox back beside taking a worktree back with git.

use std::path::Path;
use std::process::Command;

use super::site::{Caller, Site, Verb};
use super::{beside, change, outside};
use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, Sample, interleave, settle, timed};
use crate::bench::{Bench, BenchError};
use crate::process;
use crate::rig::{Stage, tree};

const NAME: &str = "rollback";
const FILES: usize = 10_000;
const CHANGED: usize = 100;
const ROUNDS: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let count = bench.effort.size(FILES);
    let (stage, repository) = Stage::with_repository(&bench.rig, count)?;
    let script = change::files(CHANGED);
    let outside = outside(&stage, &repository, "true")?;
    let called = Site::new(&stage.zeno, &repository, "true > base")?;
    let started = Site::new(&stage.zeno, &repository, "true > base")?;

    let mut lanes = [
        Lane::new("zeno, API", || called.measure(Verb::Rollback, Caller::Api, &script)),
        Lane::new("zeno rollback", || started.measure(Verb::Rollback, Caller::Program, &script)),
        Lane::new("git checkout, clean", || {
            let both = "git checkout --quiet . && git clean --quiet -fd";
            changed_back(&outside, &script, Command::new("sh").args(["-c", both]).current_dir(&outside))
        }),
        Lane::new("git stash -u", || {
            let mut stash = tree::git(&outside);
            let sample =
                changed_back(&outside, &script, stash.args(["stash", "--quiet", "--include-untracked"]))?;
            process::quietly(tree::git(&outside).args(["stash", "drop"]))?;
            Ok(sample)
        }),
    ];
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let ratio = series[0].ratio_to(&series[2]);
    let bars = vec![Bar::at_most("no slower than git checkout and clean", 1.0, ratio.median)];
    let title = format!("{CHANGED} changed files in a {count}-file repository taken back");
    let contenders = beside(&series, &[]);
    let notes = vec![
        "a rollback takes back what git ignores, too, and the machine outside of the repository".to_owned(),
    ];
    Ok(vec![Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }])
}

fn changed_back(repository: &Path, script: &str, back: &mut Command) -> Result<Sample, BenchError> {
    process::quietly(Command::new("sh").args(["-c", script]).current_dir(repository))?;
    settle();
    timed(back)
}
