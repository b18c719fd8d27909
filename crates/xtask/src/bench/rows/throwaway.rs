//! Create, first exec, destroy, in a repository that did not change since last time: as a caller of the API on a
//! kept-alive connection, and as `zeno run -- true`, which is that and the start of a program.

use super::contenders;
use crate::bench::peers::{self, BWRAP, DOCKER, Peer, Peers};
use crate::bench::report::{Bar, Direction, Row, Series, Unit};
use crate::bench::sample::{Lane, Sample, interleave, measured, timed};
use crate::bench::{Bench, BenchError};
use crate::rig::{Scratch, Stage, Zeno, zeno};

const NAME: &str = "throwaway";
const FILES: usize = 10_000;
const ROUNDS: usize = 60;
const BACK_TO_BACK: usize = 500;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    // Before zeno starts: a podman that was never called mounts its store over itself at its first call.
    let scratch = Scratch::new(&bench.rig)?;
    let peers = peers::all(bench, &scratch)?;
    let (stage, repository) = Stage::with_repository(&bench.rig, FILES)?;
    let mut connection = stage.zeno.connect()?;
    let body = zeno::run_body(&repository, &["true"]);
    let by_call = || measured(|| Ok(zeno::run(&mut connection, &body)?));
    let by_hand = || timed(&mut stage.zeno.run(&repository, &["true"]));
    Ok(vec![
        row(bench, &peers, &stage.zeno, ("`POST /v1/run` with `true`", "zeno, API"), by_call)?,
        row(bench, &peers, &stage.zeno, ("`zeno run -- true`", "zeno run"), by_hand)?,
    ])
}

fn row(
    bench: &Bench,
    peers: &Peers,
    zeno: &Zeno,
    (what, label): (&str, &str),
    mut run: impl FnMut() -> Result<Sample, BenchError>,
) -> Result<Row, BenchError> {
    let mut lanes = vec![Lane::new(label, &mut run)];
    lanes.extend(peers.usable.iter().map(Peer::lane));
    let before = zeno.cpu()?;
    let mut series = interleave(label, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let ours = series.remove(0).with_daemon_cpu(zeno.cpu()?.since(&before));
    series.insert(0, ours);

    let before = zeno.cpu()?;
    let count = bench.effort.rounds(BACK_TO_BACK);
    let samples = (0..count).map(|_| run()).collect::<Result<_, _>>()?;
    let run_on = Series::new(format!("{label}, {count} back to back"), samples)
        .with_daemon_cpu(zeno.cpu()?.since(&before));

    let bars = bars(&series, &run_on, peers.at(BWRAP), peers.at(DOCKER));
    let mut contenders = contenders(&series, &peers.absent);
    contenders.insert(1, run_on.ours());
    let title = format!("create, first exec, destroy: {what}, {FILES}-file repository, unchanged");
    let mut notes = vec!["processor time of docker and podman is the client's alone".to_owned()];
    notes.extend(bench.guests.note());
    Ok(Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes })
}

fn bars(series: &[Series], run_on: &Series, bwrap: Option<usize>, docker: Option<usize>) -> Vec<Bar> {
    let ours = &series[0];
    let long = run_on.summary();
    let mut bars = vec![Bar::at_most("p99 under 5 x p50, back to back", 5.0, long.p99 / long.median.median)];
    if let Some(bwrap) = bwrap.map(|at| &series[at + 1]) {
        bars.push(Bar::at_most("p50 no more than bwrap's", 1.0, ours.ratio_to(bwrap).median));
        let mean = long.mean / bwrap.summary().median.median;
        bars.push(Bar::at_most("back to back, on average no more than bwrap's p50", 1.0, mean));
    }
    if let Some(docker) = docker.map(|at| &series[at + 1]) {
        let times = 1.0 / ours.ratio_to(docker).median;
        bars.push(Bar::new("at least 30 x faster than docker run", Direction::AtLeast, 30.0, times));
    }
    bars
}
