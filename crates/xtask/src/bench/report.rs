//! What was measured, against whom, and whether it is good enough.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::stats::{self, Estimate, Summary};

/// One line of the table of numbers to reach.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// Ours first.
    pub(crate) contenders: Vec<Contender>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Bytes => model::units::Size(value.round() as u64).rough(),
            Self::Seconds if value < 0.000_999_5 => format!("{:.0} µs", value * 1e6),
            Self::Seconds if value < 0.099_95 => format!("{:.2} ms", value * 1e3),
            Self::Seconds if value < 0.999_5 => format!("{:.0} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Contender {
    Measured {
        label: String,
        wall: Summary,
        /// Mean processor time of one, in seconds. Absent where it cannot be told apart.
        cpu: Option<f64>,
        /// Ours divided by this one, pair by pair. Absent for ours.
        ratio: Option<Estimate>,
    },
    Absent {
        label: String,
        why: String,
    },
}

/// Something promised, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bar {
    pub(crate) claim: String,
    pub(crate) limit: f64,
    pub(crate) direction: Direction,
    pub(crate) value: f64,
    /// How far off, in percent of the limit. Absent when the promise holds.
    pub(crate) missed_by_percent: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    AtMost,
    AtLeast,
}

impl Bar {
    pub(crate) fn new(claim: impl Into<String>, direction: Direction, limit: f64, value: f64) -> Self {
        let excess = match direction {
            Direction::AtMost => value - limit,
            Direction::AtLeast => limit - value,
        };
        let missed_by_percent = (excess > 0.0).then_some(excess / limit * 100.0);
        Self { claim: claim.into(), limit, direction, value, missed_by_percent }
    }

    pub(crate) fn at_most(claim: impl Into<String>, limit: f64, value: f64) -> Self {
        Self::new(claim, Direction::AtMost, limit, value)
    }

    pub(crate) fn shown(&self) -> String {
        let outcome = match self.missed_by_percent {
            None => "holds".to_owned(),
            Some(percent) => format!("MISSED by {percent:.0} %"),
        };
        format!("{}: {outcome} ({:.3} against {:.3})", self.claim, self.value, self.limit)
    }
}

/// The samples of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    label: String,
    samples: Vec<Sample>,
    /// What daemons spent on each of them.
    daemon_cpu: Duration,
}

impl Series {
    pub(crate) fn new(label: impl Into<String>, samples: Vec<Sample>) -> Self {
        Self { label: label.into(), samples, daemon_cpu: Duration::ZERO }
    }

    /// Adds what a daemon spent on the whole series.
    pub(crate) fn with_daemon_cpu(mut self, total: Duration) -> Self {
        self.daemon_cpu = total / u32::try_from(self.samples.len().max(1)).unwrap_or(u32::MAX);
        self
    }

    /// Several lanes of the same thing as one, round by round.
    pub(crate) fn woven(lanes: &[Self]) -> Self {
        let rounds = lanes.first().map_or(0, |lane| lane.samples.len());
        let samples = (0..rounds).flat_map(|round| lanes.iter().map(move |lane| lane.samples[round]));
        let label = lanes.first().map_or("", |lane| lane.label.as_str());
        Self::new(label, samples.collect())
    }

    /// Every sample so many times, as the other side of that many pairs.
    pub(crate) fn stretched(&self, times: usize) -> Self {
        let samples = self.samples.iter().flat_map(|sample| std::iter::repeat_n(*sample, times));
        Self::new(self.label.as_str(), samples.collect())
    }

    /// What one of so many took, where each sample is of that many.
    pub(crate) fn per(&self, count: u32) -> Self {
        let one = |sample: &Sample| Sample { wall: sample.wall / count, cpu: sample.cpu / count };
        Self::new(self.label.as_str(), self.samples.iter().map(one).collect())
    }

    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.wall.as_secs_f64()).collect()
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.seconds())
    }

    /// Ours divided by theirs.
    pub(crate) fn ratio_to(&self, theirs: &Self) -> Estimate {
        stats::ratio(&self.seconds(), &theirs.seconds())
    }

    pub(crate) fn ours(&self) -> Contender {
        self.contender(None)
    }

    pub(crate) fn against(&self, ours: &Self) -> Contender {
        self.contender(Some(ours.ratio_to(self)))
    }

    fn contender(&self, ratio: Option<Estimate>) -> Contender {
        let total: Duration = self.samples.iter().map(|sample| sample.cpu).sum();
        let cpu = total.as_secs_f64() / self.samples.len() as f64 + self.daemon_cpu.as_secs_f64();
        // A lane without processes of its own (a request over a kept connection) spends in the daemon alone.
        let cpu = (cpu > 0.0).then_some(cpu);
        Contender::Measured { label: self.label.clone(), wall: self.summary(), cpu, ratio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_by_how_much_it_was_missed() {
        assert_eq!(Bar::at_most("x", 2.0, 2.0).missed_by_percent, None);
        assert_eq!(Bar::at_most("x", 2.0, 3.0).missed_by_percent, Some(50.0));
        assert_eq!(
            Bar::new("x", Direction::AtLeast, 30.0, 15.0).shown(),
            "x: MISSED by 50 % (15.000 against 30.000)"
        );
    }

    #[test]
    fn lanes_are_woven_into_pairs_of_the_same_round() {
        let lane = |millis: &[u64]| {
            let wall = |millis: &u64| Sample { wall: Duration::from_millis(*millis), cpu: Duration::ZERO };
            Series::new("x", millis.iter().map(wall).collect())
        };
        let woven = Series::woven(&[lane(&[1, 2]), lane(&[10, 20])]);
        assert_eq!(woven.seconds(), lane(&[1, 10, 2, 20]).seconds());
        assert_eq!(lane(&[100, 200]).stretched(2).seconds(), lane(&[100, 100, 200, 200]).seconds());
    }

    #[test]
    fn a_sample_of_many_is_shared_out() {
        let sample = Sample { wall: Duration::from_millis(500), cpu: Duration::from_millis(100) };
        assert_eq!(Series::new("x", vec![sample]).per(10).seconds(), [0.05]);
    }

    #[test]
    fn times_are_shown_in_the_unit_a_reader_expects() {
        let shown = [0.000_5, 0.005_678, 0.25, 2.5].map(|seconds| Unit::Seconds.show(seconds));
        assert_eq!(shown, ["500 µs", "5.68 ms", "250 ms", "2.50 s"]);
    }
}
