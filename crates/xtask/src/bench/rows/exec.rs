//! A command in a live sandbox over a kept-alive HTTP connection, beside the same command started locally.

use std::process::Command;

use super::contenders;
use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, interleave, measured, timed};
use crate::bench::{Bench, BenchError};
use crate::rig::{Stage, zeno};

const NAME: &str = "exec";
const ROUNDS: usize = 300;
const PROGRAM: &str = "/bin/true";

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let (stage, repository) = Stage::with_repository(&bench.rig, 100)?;
    let mut connection = stage.zeno.connect()?;
    let sandbox = zeno::create(&mut connection, &repository)?;
    zeno::exec(&mut connection, &sandbox, &[PROGRAM])?;

    let body = zeno::exec_body(&[PROGRAM]);
    let ours = || measured(|| Ok(zeno::exec_raw(&mut connection, &sandbox, &body).map(drop)?));
    let mut lanes = [
        Lane::new("zeno exec over HTTP", ours),
        Lane::new("fork+exec", || timed(&mut Command::new(PROGRAM))),
    ];
    let before = stage.zeno.cpu()?;
    let mut series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let ours = series.remove(0).with_daemon_cpu(stage.zeno.cpu()?.since(&before));
    series.insert(0, ours);

    let bars = vec![Bar::at_most("p50 at most 2 x fork+exec", 2.0, series[0].ratio_to(&series[1]).median)];
    let title = format!("`{PROGRAM}` in a live sandbox, HTTP keep-alive on the Unix socket");
    let contenders = contenders(&series, &[]);
    Ok(vec![Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes: Vec::new() }])
}
