//! What must not grow: fork, snapshot and rollback with the size of the tree, of what was changed and of what was sealed
//! before, diff with the size of the tree. Both sizes of a thing take turns.

use super::change;
use super::diff::Changed;
use super::site::{Caller, Site, Verb};
use crate::bench::report::{Bar, Row, Unit};
use crate::bench::sample::{Lane, interleave};
use crate::bench::{Bench, BenchError};
use crate::rig::Stage;

pub(super) const FILES: &str = "flat-files";
pub(super) const BYTES: &str = "flat-bytes";
pub(super) const WRITTEN: &str = "flat-written";
const ROUNDS: usize = 20;
const BAR: f64 = 1.3;
const VERBS: [Verb; 3] = [Verb::Fork, Verb::Snapshot, Verb::Rollback];
/// Changed in trees of either size.
const CHANGED: usize = 100;
const MEBIBYTE: u64 = 1 << 20;

/// Trees of a thousand and of a hundred thousand files, with the same change.
pub(super) fn files(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let sizes = [bench.effort.size(100_000), 1000];
    let [large, small] = sizes.map(|count| Stage::with_repository(&bench.rig, count));
    let ((large, in_large), (small, in_small)) = (large?, small?);
    let labels = sizes.map(|count| format!("tree of {count} files"));
    let script = change::files(CHANGED);
    let mut rows = Vec::new();
    for verb in VERBS {
        let sites = [Site::new(&large.zeno, &in_large, BARE)?, Site::new(&small.zeno, &in_small, BARE)?];
        let title = format!("{}, {CHANGED} files changed, trees of two sizes", verb.name());
        rows.push(pair(bench, FILES, title, lanes(&sites, verb, &labels, [&script, &script]))?);
    }
    let in_large = Changed::new(&large.zeno, &in_large, CHANGED)?;
    let in_small = Changed::new(&small.zeno, &in_small, CHANGED)?;
    let title = format!("diff, {CHANGED} files changed, trees of two sizes");
    let [of_large, of_small] = labels;
    let lanes = [Lane::new(of_large, || in_large.diff()), Lane::new(of_small, || in_small.diff())];
    rows.push(pair(bench, FILES, title, lanes)?);
    Ok(rows)
}

/// A mebibyte and a gibibyte: changed just now, and sealed before a small change.
pub(super) fn bytes(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let (stage, repository) = Stage::with_repository(&bench.rig, 1000)?;
    let large = bench.effort.size(1024) as u64 * MEBIBYTE;
    let sizes = [large, MEBIBYTE].map(|size| model::units::Size(size).rough());
    let scripts = [change::one_file(large), change::one_file(MEBIBYTE)];
    let pieces = change::files_of_a_mebibyte(large);
    let on = |script: &str| Site::new(&stage.zeno, &repository, script);
    let mut rows = Vec::new();
    for verb in VERBS {
        let labels = sizes.clone().map(|size| format!("{size} written"));
        let title = format!("{}, one file written since the last snapshot", verb.name());
        let (sites, scripts) = ([on(BARE)?, on(BARE)?], [&*scripts[0], &*scripts[1]]);
        rows.push(pair(bench, BYTES, title, lanes(&sites, verb, &labels, scripts))?);
    }
    for verb in VERBS {
        let labels = sizes.clone().map(|size| format!("{size} sealed"));
        let sites = [on(&scripts[0])?, on(&scripts[1])?];
        let title = format!("{}, one small file changed on top of what was sealed before", verb.name());
        let small = change::files(1);
        rows.push(pair(bench, BYTES, title, lanes(&sites, verb, &labels, [&small, &small]))?);
    }
    let labels = [format!("{} in files of 1 MiB", sizes[0]), format!("{} in one file", sizes[1])];
    let sites = [on(BARE)?, on(BARE)?];
    let lanes = lanes(&sites, Verb::Snapshot, &labels, [&pieces, &scripts[1]]);
    rows.push(pair(bench, BYTES, "snapshot, many files and one".to_owned(), lanes)?);
    Ok(rows)
}

/// A thousand and a hundred thousand files written since the last snapshot.
pub(super) fn written(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let (stage, repository) = Stage::with_repository(&bench.rig, 1000)?;
    let counts = [bench.effort.size(100_000), 1000];
    let labels = counts.map(|count| format!("{count} files written"));
    let [many, few] = counts.map(change::new_files);
    let on = |script: &str| Site::new(&stage.zeno, &repository, script);
    let mut rows = Vec::new();
    for verb in [Verb::Snapshot, Verb::Rollback] {
        let sites = [on(BARE)?, on(BARE)?];
        let title = format!("{}, small files written since the last snapshot", verb.name());
        rows.push(pair(bench, WRITTEN, title, lanes(&sites, verb, &labels, [&many, &few]))?);
    }
    Ok(rows)
}

/// Next to nothing to stand on.
const BARE: &str = "true >base";

/// The large one first.
fn lanes<'a>(
    sites: &'a [Site<'_>; 2],
    verb: Verb,
    labels: &[String; 2],
    scripts: [&'a str; 2],
) -> [Lane<'a>; 2] {
    let [large, small] = sites;
    let [in_large, in_small] = scripts;
    [
        Lane::new(labels[0].as_str(), move || large.measure(verb, Caller::Api, in_large)),
        Lane::new(labels[1].as_str(), move || small.measure(verb, Caller::Api, in_small)),
    ]
}

fn pair(
    bench: &Bench,
    name: &'static str,
    title: String,
    mut lanes: [Lane<'_>; 2],
) -> Result<Row, BenchError> {
    let series = interleave(name, bench.effort.rounds(ROUNDS), &mut lanes)?;
    let (large, small) = (&series[0], &series[1]);
    let bar = Bar::at_most("flat: at most 1.3 x", BAR, large.ratio_to(small).median);
    let contenders = vec![large.ours(), small.against(large)];
    let notes = vec!["over the API; all that was written before is on the disk".to_owned()];
    Ok(Row { name: name.to_owned(), title, unit: Unit::Seconds, contenders, bars: vec![bar], notes })
}
