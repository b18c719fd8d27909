//! A snapshot of an idle sandbox beside git's stash, which also puts away what was changed.

use std::process::Command;

use super::site::{Caller, Site, Verb};
use super::{beside, change, outside};
use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, interleave, settle, timed};
use crate::bench::{Bench, BenchError};
use crate::process;
use crate::rig::{Stage, tree};

const NAME: &str = "snapshot";
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

    let git = |words: &[&str]| {
        let mut command = tree::git(&outside);
        command.args(words);
        command
    };
    let stash = || {
        process::quietly(Command::new("sh").args(["-c", &script]).current_dir(&outside))?;
        settle();
        timed(&mut git(&["stash", "--quiet", "--include-untracked"]))
    };
    let away = || {
        let sample = stash()?;
        process::quietly(&mut git(&["stash", "drop"]))?;
        Ok(sample)
    };
    let away_and_back = || {
        let (away, back) = (stash()?, timed(&mut git(&["stash", "pop", "--quiet"]))?);
        process::quietly(&mut git(&["reset", "--quiet", "--hard"]))?;
        process::quietly(&mut git(&["clean", "--quiet", "-fd"]))?;
        Ok(away + back)
    };
    let mut lanes = [
        Lane::new("zeno, API", || called.measure(Verb::Snapshot, Caller::Api, &script)),
        Lane::new("zeno snapshot", || started.measure(Verb::Snapshot, Caller::Program, &script)),
        Lane::new("git stash -u", away),
        Lane::new("git stash -u, pop", away_and_back),
    ];
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let bars = vec![Bar::at_most("no slower than git stash -u", 1.0, series[0].ratio_to(&series[2]).median)];
    let title = format!("snapshot of {CHANGED} changed files in a {count}-file repository, nothing running");
    let contenders = beside(&series, &[]);
    let notes =
        vec!["after a snapshot the sandbox is as it was, after a stash alone the worktree is not".to_owned()];
    Ok(vec![Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }])
}
