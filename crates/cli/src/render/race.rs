//! `zeno race` and `zeno races`.

use jiff::Timestamp;
use model::race::{Entry, Phase, Pick, Race};
use model::units::Size;
use model::verdict::Judgement;

use super::paint::Paint;
use super::table::table;
use super::words::{age, clean, count, took};

/// The comparison, the winner, and why the others lost.
pub(crate) fn race(race: &Race, paint: Paint) -> String {
    let checks = race.checks.len();
    let rows: Vec<_> = race.entries.iter().map(|entry| row(entry, checks)).collect();
    let mut text = table(HEADER, &rows, paint);
    text.push('\n');
    for entry in &race.entries {
        text += &fate(race, entry, paint);
    }
    text
}

/// How far a candidate is, while the race is run.
pub(crate) fn phase(phase: Phase, checks: u64) -> String {
    match phase {
        Phase::Waiting => "waiting".to_owned(),
        Phase::Running => "running".to_owned(),
        Phase::Checking { ended, failed: 0 } => format!("checking {ended}/{checks}"),
        Phase::Checking { ended, failed } => format!("checking {ended}/{checks}, {failed} not passed"),
        Phase::Scoring => "scoring".to_owned(),
    }
}

/// The same for one that is through.
pub(crate) fn ended(entry: &Entry) -> String {
    let why = entry.lost.as_ref().map(|lost| format!("  {}", clean(lost))).unwrap_or_default();
    format!("{} in {}{why}", entry.outcome, took(entry.duration_ms))
}

pub(crate) fn list(races: &[Race], now: Timestamp, paint: Paint) -> String {
    let rows: Vec<[String; 5]> = races
        .iter()
        .map(|race| {
            let passed = race.entries.iter().filter(|entry| entry.outcome == Judgement::Pass).count();
            [
                race.id.to_string(),
                race.winner.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
                race.winner_sandbox.map_or_else(|| "-".to_owned(), |sandbox| sandbox.to_string()),
                format!("{passed}/{}", race.entries.len()),
                age(race.created, now),
            ]
        })
        .collect();
    table(["RACE", "WINNER", "SANDBOX", "PASSED", "AGE"], &rows, paint)
}

fn row(entry: &Entry, checks: usize) -> [String; 9] {
    let dash = || "-".to_owned();
    let lines = entry.lines.map_or_else(dash, |lines| format!("+{} -{}", lines.added, lines.removed));
    [
        entry.name.to_string(),
        entry.outcome.to_string(),
        if entry.verdict.is_some() { format!("{}/{checks}", entry.checks_passed) } else { dash() },
        took(entry.duration_ms),
        entry.files.map_or_else(dash, |files| files.to_string()),
        lines,
        entry.score.map_or_else(dash, |score| score.to_string()),
        entry.peak_memory.map_or_else(dash, Size::rough),
        entry.sandbox.map_or_else(dash, |sandbox| sandbox.to_string()),
    ]
}

/// One line for the winner, one and its last words for a loser.
fn fate(race: &Race, entry: &Entry, paint: Paint) -> String {
    if race.winner.as_ref() == Some(&entry.name) {
        return format!("{} {}: {}\n", paint.green("winner"), entry.name, reason(race.pick));
    }
    let passes = entry.outcome == Judgement::Pass;
    let word = if passes { paint.dim("passes") } else { paint.red("lost") };
    let lost = entry.lost.as_deref().map(clean);
    let mut text = match lost {
        Some(lost) => format!("{word} {}: {lost}\n", entry.name),
        None => format!("{word} {}\n", entry.name),
    };
    // The line above has the last of them already.
    let before = entry.tail.len().saturating_sub(1);
    if before > 0 {
        let shown = &entry.tail[before.saturating_sub(LINES)..before];
        text += &shown.iter().map(|line| format!("  {}\n", clean(line))).collect::<String>();
        let hidden = before - shown.len();
        if let (Some(log), true) = (&entry.log, hidden > 0) {
            let more = count(hidden as u64, "line", "lines");
            text += &paint.dim(&format!("  (at least {more} more: {})\n", clean(&log.display())));
        }
    }
    text
}

fn reason(pick: Pick) -> &'static str {
    match pick {
        Pick::Fastest => "the fastest of those that pass",
        Pick::Smallest => "the smallest of those that pass",
        Pick::Score => "the highest score of those that pass",
        Pick::Ask => "chosen",
    }
}

const HEADER: [&str; 9] =
    ["CANDIDATE", "VERDICT", "CHECKS", "TIME", "FILES", "LINES", "SCORE", "MEMORY", "SANDBOX"];
/// Last lines shown besides the very last.
const LINES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn the_comparison_and_each_ones_fate() {
        insta::assert_snapshot!(race(&samples::race(), Paint::Plain), @"
        CANDIDATE  VERDICT  CHECKS  TIME   FILES  LINES   SCORE  MEMORY   SANDBOX
        small      pass     1/1     640ms  1      +2 -1   -      5.0 MiB  sbaaaaaaaaaaaa
        broken     fail     0/1     640ms  1      +2 -1   -      5.0 MiB  sbaaaaaaaaaaaa
        large      pass     1/1     640ms  1      +40 -0  -      5.0 MiB  sbaaaaaaaaaaaa

        winner small: the smallest of those that pass
        lost broken: `unit` failed (x)
          two
          three
          four
          five
          (at least 1 line more: /home/ada/.zeno/races/x/broken.log)
        passes large: it passes, but is no smaller than `small` (+2 -1 lines)
        ");
    }

    #[test]
    fn how_far_each_is() {
        let shown = [
            Phase::Waiting,
            Phase::Running,
            Phase::Checking { ended: 1, failed: 0 },
            Phase::Checking { ended: 2, failed: 1 },
            Phase::Scoring,
        ]
        .map(|step| phase(step, 3));
        let words = ["waiting", "running", "checking 1/3", "checking 2/3, 1 not passed", "scoring"];
        assert_eq!(shown, words);
        let entries = samples::race().entries;
        assert_eq!(ended(&entries[1]), "fail in 640ms  `unit` failed (x)");
    }

    #[test]
    fn a_list() {
        insta::assert_snapshot!(list(&[samples::race()], samples::now(), Paint::Plain), @"
        RACE            WINNER  SANDBOX         PASSED  AGE
        rcaaaaaaaaaaaa  small   sbaaaaaaaaaaaa  2/3     3m
        ");
    }
}
