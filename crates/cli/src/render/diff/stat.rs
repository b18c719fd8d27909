//! `zeno diff --stat`: lines that came and went, in numbers and as a bar.

use model::diff::{Change, Diff, Lines};
use model::units::Size;

use super::super::paint::Paint;
use super::super::words::count;
use super::{Look, painted, sections, shown, word};

pub(crate) fn stat(diff: &Diff, look: Look<'_>) -> String {
    let all = diff.workspace.iter().chain(&diff.machine);
    let most = all.filter_map(|change| change.lines).map(|lines| lines.added + lines.removed).max();
    let widest = diff.workspace.iter().chain(&diff.machine).map(|change| shown(change).chars().count()).max();
    let body = |changes: &[&Change]| {
        let lines =
            changes.iter().map(|change| line(change, widest.unwrap_or(0), most.unwrap_or(0), look.paint));
        lines.collect::<String>() + &total(changes, look.paint)
    };
    sections(diff, look, body)
}

fn line(change: &Change, widest: usize, most: u64, paint: Paint) -> String {
    let number = match (change.lines, change.binary) {
        (Some(lines), _) => bar(lines, most, paint),
        (None, true) => binary(change),
        (None, false) => painted(change, word(&change.kind), paint),
    };
    format!("  {:widest$} | {number}\n", shown(change))
}

/// `12 ++++--`, scaled so that the largest change fits.
fn bar(lines: Lines, most: u64, paint: Paint) -> String {
    let scaled = |number: u64| {
        let length = if most <= LONGEST { number } else { (number * LONGEST).div_ceil(most) };
        usize::try_from(length).unwrap_or_default()
    };
    let (added, removed) = ("+".repeat(scaled(lines.added)), "-".repeat(scaled(lines.removed)));
    format!("{} {}{}", lines.added + lines.removed, paint.green(&added), paint.red(&removed))
}

fn binary(change: &Change) -> String {
    let size = |entry: &Option<model::diff::Entry>| Size(entry.as_ref().map_or(0, |entry| entry.size));
    format!("binary {} -> {}", size(&change.before), size(&change.after))
}

fn total(changes: &[&Change], paint: Paint) -> String {
    let lines = changes.iter().filter_map(|change| change.lines).fold(Lines::default(), |sum, lines| Lines {
        added: sum.added + lines.added,
        removed: sum.removed + lines.removed,
    });
    let paths = count(changes.len() as u64, "path", "paths");
    let added = count(lines.added, "line added", "lines added");
    let removed = count(lines.removed, "line removed", "lines removed");
    paint.dim(&format!("  {paths}, {added}, {removed}")) + "\n"
}

/// Characters of the longest bar.
const LONGEST: u64 = 40;
