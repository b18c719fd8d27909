//! Work inside beside the same work outside: a real build, file-heavy tools, an npm install.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::contenders;
use crate::bench::report::{Bar, Contender, Row, Unit};
use crate::bench::sample::{Lane, Sample, interleave, measured, timed};
use crate::bench::{Bench, BenchError};
use crate::files;
use crate::process;
use crate::rig::{Stage, tree};

const NAME: &str = "work";
const ROUNDS: usize = 20;
const BAR: f64 = 1.05;

/// A script to run in a repository that one of these functions makes.
struct Task {
    title: &'static str,
    script: &'static str,
    /// What the script leaves in the repository.
    leaves: &'static str,
    rounds: usize,
    prepare: fn(&Path) -> Result<(), BenchError>,
}

const TASKS: &[Task] = &[
    Task {
        title: "this project's own `cargo build`, from nothing",
        script: "cargo build --offline --quiet --target-dir built",
        leaves: "built",
        // One takes minutes, in which what else the machine does evens out.
        rounds: 3,
        prepare: checkout,
    },
    Task {
        title: "git status, grep -r and tar over 10000 files",
        script: "git status --porcelain && grep -r needle . > /dev/null && tar -cf - . | cat > /dev/null",
        leaves: "",
        rounds: ROUNDS,
        prepare: |folder| Ok(tree::repository(folder, 10_000)?),
    },
    Task {
        title: "npm ci of 161 packages of the registry",
        script: "npm ci --offline --ignore-scripts --no-audit --no-fund --silent",
        leaves: "node_modules",
        rounds: ROUNDS,
        prepare: npm_project,
    },
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    TASKS.iter().map(|task| measure_task(bench, task)).collect()
}

fn measure_task(bench: &Bench, task: &Task) -> Result<Row, BenchError> {
    let stage = Stage::new(&bench.rig)?;
    // Two copies: what the native run leaves and removes must not count as changes of the captured one.
    let [inside, outside] = ["inside", "outside"].map(|name| stage.scratch.join(name));
    let row = |contenders, bars| Row {
        name: NAME.to_owned(),
        title: task.title.to_owned(),
        unit: Unit::Seconds,
        contenders,
        bars,
        notes: Vec::new(),
    };
    if let Err(error) = prepare(task, &inside, &outside) {
        let absent = Contender::Absent { label: "zeno run".to_owned(), why: crate::chain(&error) };
        return Ok(row(vec![absent], Vec::new()));
    }
    timed(&mut stage.zeno.run(&inside, &["true"]))?;

    let ours = || measure_inside(&stage, &inside, task.script);
    let native = || {
        let sample = timed(Command::new("sh").args(["-c", task.script]).current_dir(&outside));
        clean(&outside, task)?;
        sample
    };
    let mut lanes = [Lane::new("zeno run", ours), Lane::new("native", native)];
    let before = stage.zeno.cpu()?;
    let mut series = interleave(NAME, bench.effort.rounds(task.rounds), &mut lanes)?;
    drop(lanes);
    let ours = series.remove(0).with_daemon_cpu(stage.zeno.cpu()?.since(&before));
    series.insert(0, ours);
    let bar = Bar::at_most("at most 1.05 x native", BAR, series[0].ratio_to(&series[1]).median);
    Ok(row(contenders(&series, &[]), vec![bar]))
}

/// The daemon does not wait for what runs inside, so that only the shell there can tell what it took of the processor.
fn measure_inside(stage: &Stage, folder: &Path, script: &str) -> Result<Sample, BenchError> {
    let script = format!("{script} && times");
    let mut told = Vec::new();
    let sample = measured(|| {
        told = process::output(&mut stage.zeno.run(folder, &["sh", "-c", &script]))?;
        Ok(())
    })?;
    let told = String::from_utf8_lossy(&told);
    let inside = told.lines().last().and_then(children_cpu);
    let inside = inside.ok_or_else(|| BenchError::Times { told: told.clone().into_owned() })?;
    Ok(Sample { cpu: sample.cpu + inside, ..sample })
}

/// The last line of what a shell's `times` prints: `0m1.250s 0m0.500s`, its children's in user and in kernel mode.
fn children_cpu(line: &str) -> Option<Duration> {
    let span = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        let seconds = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        Some(Duration::from_secs(minutes.parse::<u64>().ok()? * 60) + seconds)
    };
    let (user, kernel) = line.split_once(' ')?;
    Some(span(user)? + span(kernel)?)
}

/// Makes both copies and does the work once outside, so that caches are warm and a task that cannot run here is known.
fn prepare(task: &Task, inside: &Path, outside: &Path) -> Result<(), BenchError> {
    (task.prepare)(outside)?;
    process::quietly(Command::new("sh").args(["-c", task.script]).current_dir(outside))?;
    clean(outside, task)?;
    Ok(process::quietly(Command::new("cp").arg("-a").args([outside, inside]))?)
}

fn clean(folder: &Path, task: &Task) -> Result<(), BenchError> {
    if task.leaves.is_empty() { Ok(()) } else { Ok(files::remove_tree(&folder.join(task.leaves))?) }
}

/// This project as last committed.
fn checkout(folder: &Path) -> Result<(), BenchError> {
    Ok(process::quietly(
        Command::new("git").args(["clone", "--quiet", "--no-hardlinks"]).arg(files::root()).arg(folder),
    )?)
}

/// A project with a lockfile, and all it names in npm's cache: no registry, no network afterwards.
fn npm_project(folder: &Path) -> Result<(), BenchError> {
    files::write(&folder.join("package.json"), include_str!("npm/package.json"))?;
    files::write(&folder.join("package-lock.json"), include_str!("npm/package-lock.json"))?;
    // Where npm looks is part of what its cache knows a package by, and a user's own `.npmrc` is not shown to a sandbox.
    let registry = process::line(Command::new("npm").args(["config", "get", "registry"]))?;
    files::write(&folder.join(".npmrc"), &format!("registry={registry}\n"))?;
    files::write(&folder.join(".gitignore"), "node_modules\n")?;
    process::quietly(
        Command::new("npm")
            .args(["ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
            .current_dir(folder),
    )?;
    Ok(tree::commit(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_tells_of_its_children_is_read() {
        assert_eq!(children_cpu("1m1.250000s 0m0.500000s"), Some(Duration::from_millis(61_750)));
        for bad in ["", "done", "1m1.25s", "m1s 0m0s", "0m-1s 0m0s"] {
            assert_eq!(children_cpu(bad), None, "{bad}");
        }
        // As the shell of this machine writes it. A busy one would count as another test's.
        let told = process::output(Command::new("sh").args(["-c", "true; times"])).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert!(children_cpu(told.lines().last().unwrap()).is_some(), "{told}");
    }
}
