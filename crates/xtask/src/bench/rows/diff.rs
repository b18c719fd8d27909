//! What a sandbox changed, told beside what git and `diff` tell; and what each changed file costs.

use std::path::Path;
use std::process::Command;

use model::SandboxId;

use super::{beside, change, outside};
use crate::bench::report::{Bar, Row, Series, Unit};
use crate::bench::sample::{Lane, Sample, interleave, measured, timed, with_daemon};
use crate::bench::{Bench, BenchError};
use crate::process;
use crate::rig::{RigError, Stage, Zeno, saves, tree, zeno};

const NAME: &str = "diff";
const FILES: usize = 10_000;
const CHANGED: usize = 100;
const ROUNDS: usize = 20;
/// Changed files whose cost is compared, most first.
const COUNTS: [usize; 3] = [1000, 100, 10];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let count = bench.effort.size(FILES);
    let (stage, repository) = Stage::with_repository(&bench.rig, count)?;
    Ok(vec![beside_git(bench, &stage, (&repository, count))?, per_file(bench, &stage, (&repository, count))?])
}

fn beside_git(bench: &Bench, stage: &Stage, (repository, count): (&Path, usize)) -> Result<Row, BenchError> {
    let script = change::files(CHANGED);
    let before = outside(stage, repository, "true")?;
    let after = stage.scratch.join("after");
    process::quietly(Command::new("cp").arg("-a").args([&before, &after]))?;
    process::quietly(Command::new("sh").args(["-c", &script]).current_dir(&after))?;
    let changed = Changed::new(&stage.zeno, repository, CHANGED)?;
    let mut command = stage.zeno.command();
    command.args(["diff", "--name-status", &changed.sandbox.to_string()]);
    let mut lanes = [
        Lane::new("zeno, API", || changed.diff()),
        Lane::new("zeno diff", || with_daemon(&stage.zeno, || timed(&mut command))),
        Lane::new("git status -u", || {
            timed(tree::git(&after).args(["status", "--porcelain", "--untracked-files=all"]))
        }),
        Lane::new("diff -rq", || {
            // It exits with 1 where trees differ.
            let both = "diff -rq --exclude=.git \"$0\" \"$1\" || test $? = 1";
            timed(Command::new("sh").args(["-c", both]).args([&before, &after]))
        }),
    ];
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let bars = vec![Bar::at_most("no slower than git status", 1.0, series[0].ratio_to(&series[2]).median)];
    let title = format!("diff of {CHANGED} changed files in a {count}-file repository");
    let contenders = beside(&series, &[]);
    Ok(Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes: Vec::new() })
}

fn per_file(bench: &Bench, stage: &Stage, (repository, count): (&Path, usize)) -> Result<Row, BenchError> {
    let sandboxes = COUNTS.map(|changed| Changed::new(&stage.zeno, repository, changed));
    let mut lanes = Vec::new();
    for changed in sandboxes {
        let changed = changed?;
        lanes.push(Lane::new(format!("{} changed, each", changed.count), move || changed.diff()));
    }
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let each = |(series, changed): (&Series, usize)| series.per(u32::try_from(changed).expect("a few"));
    let series: Vec<Series> = series.iter().zip(COUNTS).map(each).collect();
    let ratio = series[0].ratio_to(&series[1]);
    let bars = vec![Bar::at_most("each of 1000 at most 1.3 x each of 100", 1.3, ratio.median)];
    let title = format!("diff in a {count}-file repository, per changed file");
    let contenders = super::contenders(&series, &[]);
    Ok(Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes: Vec::new() })
}

/// A sandbox that has changed so many files of its repository.
pub(super) struct Changed<'a> {
    zeno: &'a Zeno,
    sandbox: SandboxId,
    count: usize,
}

impl<'a> Changed<'a> {
    pub(super) fn new(zeno: &'a Zeno, repository: &Path, count: usize) -> Result<Self, BenchError> {
        let mut connection = zeno.connect()?;
        let sandbox = zeno::create(&mut connection, repository)?;
        zeno::exec(&mut connection, &sandbox, &["sh", "-c", &change::files(count)])?;
        let listed = saves::changes(&mut connection, sandbox, None)?;
        if listed != count {
            let sandbox = sandbox.to_string();
            return Err(RigError::NotListed { sandbox, expected: count, listed }.into());
        }
        Ok(Self { zeno, sandbox, count })
    }

    /// Over the API, on a connection that has been used.
    pub(super) fn diff(&self) -> Result<Sample, BenchError> {
        let path = saves::diff_path(self.sandbox, None);
        let mut connection = self.zeno.connect()?;
        saves::of(&mut connection, self.sandbox)?;
        with_daemon(self.zeno, || measured(|| Ok(connection.send("GET", &path, "").map(drop)?)))
    }
}
