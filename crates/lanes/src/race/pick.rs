//! Who wins, and why the others did not.

use std::cmp::Ordering;

use model::race::{Entry, Pick};
use model::verdict::Judgement;

/// The winner's place among the entries. All others that passed learn why it was not them.
pub(super) fn pick(by: Pick, entries: &mut [Entry]) -> Option<usize> {
    let fits = |entry: &Entry| {
        entry.outcome == Judgement::Pass
            && match by {
                Pick::Score => entry.score.is_some(),
                Pick::Fastest | Pick::Smallest | Pick::Ask => true,
            }
    };
    let among = entries.iter().enumerate().filter(|(_, entry)| fits(entry));
    // Of equals the first that was given.
    let best = match by {
        Pick::Ask => None,
        Pick::Fastest | Pick::Smallest | Pick::Score => {
            among.min_by(|one, other| compare(by, one.1, other.1))
        }
    };
    let winner = best.map(|(at, _)| at)?;
    let (name, measure) = (entries[winner].name.clone(), measure(by, &entries[winner]));
    for (at, entry) in entries.iter_mut().enumerate() {
        if at != winner && fits(entry) {
            entry.lost = Some(match by {
                Pick::Fastest => format!("it passes, but is no faster than `{name}` ({measure})"),
                Pick::Smallest => format!("it passes, but is no smaller than `{name}` ({measure})"),
                Pick::Score | Pick::Ask => {
                    format!("it passes, but scores no higher than `{name}` ({measure})")
                }
            });
        }
    }
    entries[winner].lost = None;
    Some(winner)
}

fn compare(by: Pick, one: &Entry, other: &Entry) -> Ordering {
    let size = |entry: &Entry| {
        let lines = entry.lines.unwrap_or_default();
        (lines.added + lines.removed, entry.files.unwrap_or_default())
    };
    let score = |entry: &Entry| entry.score.unwrap_or(f64::NEG_INFINITY);
    let time = || one.duration_ms.cmp(&other.duration_ms);
    match by {
        Pick::Fastest => time().then(size(one).cmp(&size(other))),
        Pick::Smallest | Pick::Ask => size(one).cmp(&size(other)).then_with(time),
        Pick::Score => score(other).total_cmp(&score(one)).then_with(|| size(one).cmp(&size(other))),
    }
}

fn measure(by: Pick, entry: &Entry) -> String {
    match by {
        Pick::Fastest => format!("{} ms", entry.duration_ms),
        Pick::Smallest | Pick::Ask => {
            let lines = entry.lines.unwrap_or_default();
            format!("+{} -{} lines", lines.added, lines.removed)
        }
        Pick::Score => entry.score.unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use model::diff::Lines;

    use super::super::entrant::lost;
    use super::*;

    fn entry(name: &str, outcome: Judgement, millis: u64, added: u64, score: Option<f64>) -> Entry {
        Entry {
            outcome,
            duration_ms: millis,
            files: Some(1),
            lines: Some(Lines { added, removed: 0 }),
            score,
            ..lost(&name.parse().unwrap(), "failed")
        }
    }

    #[track_caller]
    fn check(by: Pick, winner: Option<&str>) -> Vec<Option<String>> {
        use Judgement::{Fail, Pass};
        let mut entries = [
            entry("broken", Fail, 1, 1, Some(9.0)),
            entry("quick", Pass, 10, 30, Some(-1.0)),
            entry("small", Pass, 20, 3, None),
            entry("scored", Pass, 30, 40, Some(2.5)),
        ];
        let at = pick(by, &mut entries);
        assert_eq!(at.map(|at| entries[at].name.as_str()), winner);
        entries.map(|entry| entry.lost).to_vec()
    }

    #[test]
    fn only_those_that_pass_can_win() {
        check(Pick::Fastest, Some("quick"));
        let lost = check(Pick::Smallest, Some("small"));
        let words = |text: &str| Some(text.to_owned());
        let smaller = words("it passes, but is no smaller than `small` (+3 -0 lines)");
        assert_eq!(lost, [words("failed"), smaller.clone(), None, smaller]);
        check(Pick::Score, Some("scored"));
        assert_eq!(check(Pick::Ask, None)[1], words("failed"));
    }
}
