//! One measurement: how long it took by the clock and on the processor.

use std::io::{self, IsTerminal};
use std::ops::Add;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use super::BenchError;
use super::report::Series;
use crate::process::ProcessError;
use crate::rig::{RigError, Zeno, interrupt};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// Of the processes started for it. A daemon's share is added per series, where it can be told apart.
    pub(crate) cpu: Duration,
}

impl Add for Sample {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

/// Something that can be measured again and again.
pub(crate) struct Lane<'a> {
    pub(crate) label: String,
    pub(crate) measure: Box<dyn FnMut() -> Result<Sample, BenchError> + 'a>,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(
        label: impl Into<String>,
        measure: impl FnMut() -> Result<Sample, BenchError> + 'a,
    ) -> Self {
        Self { label: label.into(), measure: Box::new(measure) }
    }
}

/// Runs every lane once per round, each round starting with another lane, and returns the series lane by lane.
pub(crate) fn interleave(
    name: &str,
    rounds: usize,
    lanes: &mut [Lane<'_>],
) -> Result<Vec<Series>, BenchError> {
    let mut samples = vec![Vec::with_capacity(rounds); lanes.len()];
    for round in 0..rounds {
        progress(&format!("{name}: round {} of {rounds}", round + 1));
        for step in 0..lanes.len() {
            let at = (round + step) % lanes.len();
            samples[at].push((lanes[at].measure)()?);
        }
    }
    progress("");
    Ok(lanes.iter().zip(samples).map(|(lane, samples)| Series::new(lane.label.as_str(), samples)).collect())
}

/// Shows how far we are, in place of what was shown before. Only for somebody who looks at a terminal.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Runs a command to its end, its output thrown away; anything but success is an error.
pub(crate) fn timed(command: &mut Command) -> Result<Sample, BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    measured(|| {
        let mut child = command.spawn().map_err(|source| ProcessError::start(command, source))?;
        finish(command, &mut child)
    })
}

/// Starts this many at once and waits for all.
pub(crate) fn timed_at_once(count: usize, command: &mut Command) -> Result<Sample, BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    measured(|| {
        let start = |_| command.spawn().map_err(|source| ProcessError::start(command, source));
        let mut children = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
        children.iter_mut().try_for_each(|child| finish(command, child))
    })
}

pub(crate) fn measured(work: impl FnOnce() -> Result<(), BenchError>) -> Result<Sample, BenchError> {
    interrupt::check()?;
    let cpu = children_cpu()?;
    let start = Instant::now();
    work()?;
    let wall = start.elapsed();
    Ok(Sample { wall, cpu: children_cpu()?.saturating_sub(cpu) })
}

/// The same with what this zeno's daemon, launcher and living inits spent on it.
pub(crate) fn with_daemon(
    zeno: &Zeno,
    measure: impl FnOnce() -> Result<Sample, BenchError>,
) -> Result<Sample, BenchError> {
    let before = zeno.cpu()?;
    let sample = measure()?;
    Ok(Sample { cpu: sample.cpu + zeno.cpu()?.since(&before), ..sample })
}

/// What the one before left to be written must not be paid for by the next.
pub(crate) fn settle() {
    rustix::fs::sync();
}

fn finish(command: &Command, child: &mut Child) -> Result<(), BenchError> {
    let status = child.wait().map_err(|source| ProcessError::wait(command, source))?;
    if status.success() {
        return Ok(());
    }
    let command = crate::process::shown(command);
    Err(RigError::from(ProcessError::Failed { command, status, complaint: String::new() }).into())
}

/// CPU time of all children this process has waited for.
fn children_cpu() -> Result<Duration, BenchError> {
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|errno| BenchError::Usage(io::Error::from(errno)))?;
    let micros = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_usec().unsigned_abs());
    Ok(Duration::from_micros(micros.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_a_busy_child_is_seen_and_a_sleeping_one_costs_none() {
        let busy =
            timed(Command::new("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]))
                .unwrap();
        assert!(busy.cpu > Duration::from_millis(10), "{busy:?}");
        let asleep = timed(Command::new("sleep").arg("0.2")).unwrap();
        assert!(asleep.wall >= Duration::from_millis(200) && asleep.cpu < asleep.wall / 2, "{asleep:?}");
    }

    #[test]
    fn a_command_that_fails_is_no_sample() {
        assert!(timed(&mut Command::new("false")).is_err());
    }
}
