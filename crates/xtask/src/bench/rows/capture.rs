//! The first capture of a workspace beside `cp -a`, and the capture of one that did not change.

use std::path::Path;

use crate::bench::report::{Bar, Row, Series, Unit};
use crate::bench::sample::{Lane, Sample, interleave, settle, timed, with_daemon};
use crate::bench::{Bench, BenchError, Effort};
use crate::files;
use crate::rig::{Stage, Zeno};

const NAME: &str = "capture";
const PAIRS: usize = 20;

/// How often what is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    files: usize,
    /// Of the first capture and of `cp -a`, which take long.
    rounds: usize,
    /// Of the capture of what did not change, in each round.
    again: usize,
}

const SMALL: Plan = Plan { files: 10_000, rounds: PAIRS, again: 1 };
const LARGE: Plan = Plan { files: 100_000, rounds: 5, again: PAIRS / 5 };

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let plans: &[Plan] = if bench.effort == Effort::Quick { &[SMALL] } else { &[SMALL, LARGE] };
    plans.iter().map(|plan| measure_size(bench, *plan)).collect()
}

fn measure_size(bench: &Bench, plan: Plan) -> Result<Row, BenchError> {
    let (stage, repository) = Stage::with_repository(&bench.rig, plan.files)?;
    let nowhere = stage.scratch.join("nowhere");
    files::make_folder(&nowhere)?;

    let mut homes = 0;
    let first = || {
        homes += 1;
        let zeno = Zeno::new(&bench.rig.zeno, stage.scratch.join(&format!("home{homes}")));
        let sample = first_capture(&zeno, &repository, &nowhere);
        zeno.stop()?;
        sample
    };
    let copied = super::copy("cp -a".to_owned(), &[], &repository, stage.scratch.path().to_owned());
    let again = || timed(&mut stage.zeno.run(&repository, &["true"]));
    let mut lanes = vec![Lane::new("zeno run, first", first), copied];
    lanes.extend((0..plan.again).map(|_| Lane::new("zeno run, unchanged", again)));
    let series = interleave(NAME, bench.effort.rounds(plan.rounds), &mut lanes)?;
    drop(lanes);
    Ok(row(plan, &series))
}

fn row(plan: Plan, series: &[Series]) -> Row {
    let (first, copied, unchanged) = (&series[0], &series[1], Series::woven(&series[2..]));
    let of_round = |series: &Series| series.stretched(plan.again);
    let bars = vec![
        Bar::at_most("first capture at least as fast as cp -a", 1.0, first.ratio_to(copied).median),
        Bar::at_most("unchanged: at most 1/20 of cp -a", 0.05, unchanged.ratio_to(&of_round(copied)).median),
    ];
    let contenders = vec![first.ours(), copied.against(first), unchanged.against(&of_round(first))];
    let title = format!(
        "first capture of {} files, and again unchanged (each a whole `zeno run -- true`)",
        plan.files
    );
    let notes = if plan.again > 1 {
        let (rounds, pairs) = (first.seconds().len(), unchanged.seconds().len());
        vec![format!(
            "first capture and cp -a were measured {rounds} times only, because they take long; the {pairs} \
             unchanged captures are paired with the ones of their round"
        )]
    } else {
        Vec::new()
    };
    Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }
}

/// With a daemon that runs but has never seen the repository.
fn first_capture(zeno: &Zeno, repository: &Path, nowhere: &Path) -> Result<Sample, BenchError> {
    timed(&mut zeno.run(nowhere, &["true"]))?;
    settle();
    with_daemon(zeno, || timed(&mut zeno.run(repository, &["true"])))
}
