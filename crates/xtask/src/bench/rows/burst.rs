//! A hundred at once: as client processes, and as callers of the API.

use std::path::Path;
use std::thread;

use super::contenders;
use crate::bench::peers;
use crate::bench::report::{Bar, Contender, Row, Series, Unit};
use crate::bench::sample::{Lane, interleave, measured, timed_at_once};
use crate::bench::{Bench, BenchError};
use crate::rig::{RigError, Stage, Zeno, zeno};

const NAME: &str = "burst";
const FILES: usize = 10_000;
const AT_ONCE: usize = 100;
const ROUNDS: usize = 20;
/// Seconds, on two idle cores.
const BAR: f64 = 0.5;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let peers = peers::bwrap();
    let (stage, repository) = Stage::with_repository(&bench.rig, FILES)?;

    let by_clients = || timed_at_once(AT_ONCE, &mut stage.zeno.run(&repository, &["true"]));
    let by_callers = || measured(|| Ok(callers(&stage.zeno, &repository)?));
    let rounds = bench.effort.rounds(ROUNDS);
    let mut rows = Vec::new();
    let kinds: [(&str, &dyn Fn() -> _); 2] =
        [("`zeno run -- true` clients", &by_clients), ("API callers (create, exec, destroy)", &by_callers)];
    for (kind, measure) in kinds {
        let mut lanes = vec![Lane::new("zeno", measure)];
        lanes.extend(peers.usable.iter().map(|peer| {
            let mut command = peer.command();
            Lane::new(peer.label, move || timed_at_once(AT_ONCE, &mut command))
        }));
        let before = stage.zeno.cpu()?;
        let mut series = interleave(NAME, rounds, &mut lanes)?;
        let ours = series.remove(0).with_daemon_cpu(stage.zeno.cpu()?.since(&before));
        series.insert(0, ours);
        rows.push(row(kind, &series, &peers.absent));
    }
    Ok(rows)
}

fn row(kind: &str, series: &[Series], absent: &[Contender]) -> Row {
    let median = series[0].summary().median.median;
    Row {
        name: NAME.to_owned(),
        title: format!("{AT_ONCE} at once: {kind}"),
        unit: Unit::Seconds,
        contenders: contenders(series, absent),
        bars: vec![Bar::at_most("at most 0.5 s on 2 idle cores", BAR, median)],
        notes: Vec::new(),
    }
}

/// Every caller has its own connection, as callers do.
fn callers(subject: &Zeno, folder: &Path) -> Result<(), RigError> {
    let one = || {
        let mut connection = subject.connect()?;
        let sandbox = zeno::create(&mut connection, folder)?;
        zeno::exec(&mut connection, &sandbox, &["true"])?;
        zeno::destroy(&mut connection, &sandbox)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a caller does not panic"))
    })
}
