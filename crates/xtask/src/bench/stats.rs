//! Medians and their intervals from order statistics: no assumption about the shape of the noise.

use serde::{Deserialize, Serialize};

/// A median and where the true one lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What a series of measurements says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) median: Estimate,
    pub(crate) mean: f64,
    pub(crate) p99: f64,
}

impl Summary {
    /// Of at least one value.
    pub(crate) fn of(values: &[f64]) -> Self {
        let sorted = sorted(values);
        Self {
            count: sorted.len(),
            median: estimate(values),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p99: quantile(&sorted, 0.99),
        }
    }
}

/// The median of pairwise ratios: what both sides of a pair suffered alike drops out.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Estimate {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    estimate(&ratios)
}

pub(crate) fn estimate(values: &[f64]) -> Estimate {
    let sorted = sorted(values);
    let rank = interval_rank(sorted.len());
    Estimate { median: quantile(&sorted, 0.5), low: sorted[rank], high: sorted[sorted.len() - 1 - rank] }
}

/// How many values may be cut off at each end so that the rest still spans the true median with 95 %:
/// the number of values below it follows the binomial distribution with p = 1/2.
fn interval_rank(count: usize) -> usize {
    let mut rank = 0;
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = probability;
    // Below the smallest positive number the recurrence would stay at 0; the normal limit is exact enough there.
    if probability < f64::MIN_POSITIVE {
        let half = 1.96 * (count as f64).sqrt() / 2.0;
        return (count as f64 / 2.0 - half).floor() as usize;
    }
    loop {
        probability *= (count - rank) as f64 / (rank + 1) as f64;
        if tail + probability > 0.025 || rank + 1 > count / 2 {
            return if tail > 0.025 { 0 } else { rank };
        }
        tail += probability;
        rank += 1;
    }
}

/// Between the two nearest values, in proportion.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_rank(count: usize, expected: usize) {
        assert_eq!(interval_rank(count), expected, "{count} values");
    }

    /// Ranks as in the published tables of the sign test (0-based: the table's k minus one).
    #[test]
    fn interval_ranks_are_those_of_the_sign_test() {
        check_rank(1, 0);
        check_rank(5, 0);
        check_rank(6, 0);
        check_rank(9, 1);
        check_rank(20, 5);
        check_rank(25, 7);
        check_rank(50, 17);
        check_rank(100, 39);
        check_rank(5000, 2430);
    }

    #[test]
    fn a_summary_of_known_values() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let summary = Summary::of(&values);
        assert_eq!(summary.count, 20);
        assert_eq!(summary.median, Estimate { median: 10.5, low: 6.0, high: 15.0 });
        assert_eq!(summary.mean, 10.5);
        assert!((summary.p99 - 19.81).abs() < 1e-9);
    }

    #[test]
    fn one_value_is_its_own_median() {
        assert_eq!(estimate(&[3.0]), Estimate { median: 3.0, low: 3.0, high: 3.0 });
    }

    #[test]
    fn drift_that_hits_both_sides_drops_out_of_the_ratio() {
        let theirs: Vec<f64> = (0..30).map(|at| 1.0 + f64::from(at)).collect();
        let ours: Vec<f64> = theirs.iter().map(|value| value * 0.8).collect();
        let ratio = ratio(&ours, &theirs);
        assert!((ratio.low - 0.8).abs() < 1e-9 && (ratio.high - 0.8).abs() < 1e-9);
    }
}
