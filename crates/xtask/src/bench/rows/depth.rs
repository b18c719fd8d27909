//! Reading through layers: what it costs to look at every file of a sandbox that was sealed again and again, each time
//! with a change in every folder. Squashing keeps stacks at a depth at which this stays cheap.

use std::path::Path;
use std::process::Command;

use model::SnapshotId;

use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, Sample, interleave, measured, timed, with_daemon};
use crate::bench::{Bench, BenchError};
use crate::rig::{Stage, Zeno, saves, zeno};

const NAME: &str = "depth";
const FILES: usize = 10_000;
const ROUNDS: usize = 20;
/// Snapshots: one, as many as layers may lie on each other, and more, so that some were squashed.
const DEPTHS: [usize; 3] = [1, 8, 40];
/// Looks at every file, and reads none.
const LOOK: [&str; 6] = ["find", ".", "-type", "f", "-newermt", "1970-01-02"];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let count = bench.effort.size(FILES);
    let (stage, repository) = Stage::with_repository(&bench.rig, count)?;
    let mut lanes = Vec::new();
    for depth in DEPTHS {
        let deep = Deep::new(&stage.zeno, &repository, depth)?;
        let label = if depth == 1 { "1 snapshot".to_owned() } else { format!("{depth} snapshots") };
        lanes.push(Lane::new(label, move || deep.look()));
    }
    let mut outside = Command::new(LOOK[0]);
    outside.args(&LOOK[1..]).current_dir(&repository);
    lanes.push(Lane::new("outside", move || timed(&mut outside)));
    let series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let flat = |at: usize| {
        let title = format!("{} snapshots at most 1.5 x one", DEPTHS[at]);
        Bar::at_most(title, 1.5, series[at].ratio_to(&series[0]).median)
    };
    let bars = vec![flat(1), flat(2)];
    let notes = vec![
        "in a sandbox made for it of the last snapshot, so that the kernel knows no name in it yet; outside it knows them all"
            .to_owned(),
    ];
    let title = format!("look at every file of a {count}-file repository, sealed again and again");
    let contenders = super::contenders(&series, &[]);
    Ok(vec![Row { name: NAME.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }])
}

/// Sealed so many times, with a change in every folder each time.
struct Deep<'a> {
    zeno: &'a Zeno,
    last: SnapshotId,
}

impl<'a> Deep<'a> {
    fn new(zeno: &'a Zeno, repository: &Path, depth: usize) -> Result<Self, BenchError> {
        let mut connection = zeno.connect()?;
        let sandbox = zeno::create(&mut connection, repository)?;
        let mut seal = |at: usize| {
            let script = format!("for folder in part*; do echo {at} >$folder/file{at:03}.txt; done");
            zeno::exec(&mut connection, &sandbox, &["sh", "-c", &script])?;
            saves::snapshot(&mut connection, sandbox)
        };
        let mut last = seal(0)?;
        for at in 1..depth {
            last = seal(at)?;
        }
        Ok(Self { zeno, last })
    }

    fn look(&self) -> Result<Sample, BenchError> {
        let mut connection = self.zeno.connect()?;
        let sandbox = saves::restore(&mut connection, self.last)?;
        // What is read of the program itself is not the point.
        zeno::exec(&mut connection, &sandbox, &["find", "/dev/null"])?;
        let sample =
            with_daemon(self.zeno, || measured(|| Ok(zeno::exec(&mut connection, &sandbox, &LOOK)?)))?;
        zeno::destroy(&mut connection, &sandbox)?;
        Ok(sample)
    }
}
