//! Lines that differ, with a few around them.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use model::diff::Lines;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// Writes the hunks of a unified diff.
pub(super) fn write(before: &[u8], after: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (lines(before), lines(after));
    for hunk in group_diff_ops(operations(&old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old_range = range(first.old_range().start, last.old_range().end);
        let new_range = range(first.new_range().start, last.new_range().end);
        writeln!(out, "@@ -{old_range} +{new_range} @@")?;
        for operation in &hunk {
            if operation.tag() == DiffTag::Equal {
                put(b' ', &old[operation.old_range()], out)?;
            } else {
                put(b'-', &old[operation.old_range()], out)?;
                put(b'+', &new[operation.new_range()], out)?;
            }
        }
    }
    Ok(())
}

/// How many lines came and how many went.
pub(in super::super) fn count(before: &[u8], after: &[u8]) -> Lines {
    let operations = operations(&lines(before), &lines(after));
    let changed = operations.iter().filter(|operation| operation.tag() != DiffTag::Equal);
    changed.fold(Lines::default(), |lines, operation| Lines {
        added: lines.added + operation.new_range().len() as u64,
        removed: lines.removed + operation.old_range().len() as u64,
    })
}

/// How much of a file is the same, in percent of the larger.
pub(super) fn similarity(before: &[u8], after: &[u8]) -> usize {
    if before == after {
        return 100;
    }
    let (old, new) = (lines(before), lines(after));
    let equal = operations(&old, &new).into_iter().filter(|operation| operation.tag() == DiffTag::Equal);
    let same: usize = equal.flat_map(|operation| &old[operation.old_range()]).map(|line| line.len()).sum();
    // Only the same file is all the same.
    (same * 100 / before.len().max(after.len()).max(1)).min(99)
}

fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    // When the time is over, what is left is told as replaced: longer, and as right.
    let deadline = Instant::now().checked_add(PATIENCE);
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

/// With their ends. A lone carriage return is no end: git does not take it for one.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// `first,length`. Of no lines, the number is that of the line before them.
fn range(start: usize, end: usize) -> String {
    let length = end - start;
    let first = if length == 0 { start } else { start + 1 };
    if length == 1 { first.to_string() } else { format!("{first},{length}") }
}

fn put(sign: u8, lines: &[&[u8]], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        out.write_all(&[sign])?;
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

const CONTEXT: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);
