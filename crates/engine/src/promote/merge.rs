//! Merging two changes of one text, line by line.
//!
//! On `similar`, which the diff uses already, instead of a crate of its own: three-way merging is a walk over two lists of
//! changes, and what counts as a conflict is ours to say. As with git, changes that touch each other are one.

use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

/// The text with both changes; `None` where they are in each other's way, or it is not text.
pub(super) fn merge(before: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if [before, ours, theirs].iter().any(|text| is_binary(text)) {
        return None;
    }
    let (base, ours, theirs) = (lines(before), lines(ours), lines(theirs));
    let mut merged = Vec::new();
    let mut at = 0;
    for block in Blocks::new(&base, &ours, &theirs, None) {
        merged.extend_from_slice(&base[at..block.base.start]);
        merged.extend_from_slice(match block.settled {
            Settled::Ours => &ours[block.ours],
            Settled::Theirs => &theirs[block.theirs],
            Settled::Not => return None,
        });
        at = block.base.end;
    }
    merged.extend_from_slice(&base[at..]);
    Some(merged.concat())
}

/// The places where one side, or both, changed something, in order.
pub(super) struct Blocks<'a> {
    ours: Changes<'a>,
    theirs: Changes<'a>,
}

/// One of them: lines of the base, and what each side has in their place.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) base: Range<usize>,
    pub(super) ours: Range<usize>,
    pub(super) theirs: Range<usize>,
    pub(super) settled: Settled,
}

/// Whose lines are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Ours,
    Theirs,
    /// Both changed it, differently.
    Not,
}

impl<'a> Blocks<'a> {
    /// When the time is over, what is left is taken for replaced: coarser, and as right.
    pub(super) fn new(
        base: &[&'a [u8]],
        ours: &'a [&'a [u8]],
        theirs: &'a [&'a [u8]],
        deadline: Option<Instant>,
    ) -> Self {
        Self { ours: Changes::new(base, ours, deadline), theirs: Changes::new(base, theirs, deadline) }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let start = self.ours.next_start().into_iter().chain(self.theirs.next_start()).min()?;
        let (mut end, mut ours, mut theirs) = (start, 0, 0);
        // Each change that touches the block may make it longer, so that it touches the next.
        loop {
            let taken = self.ours.take_touching(&mut end, start);
            let more = self.theirs.take_touching(&mut end, start);
            ours += taken;
            theirs += more;
            if taken + more == 0 {
                break;
            }
        }
        let base = start..end;
        let (our_range, their_range) = (self.ours.range_of(&base), self.theirs.range_of(&base));
        let is_same = self.ours.lines[our_range.clone()] == self.theirs.lines[their_range.clone()];
        let settled = if theirs == 0 || is_same {
            Settled::Ours
        } else if ours == 0 {
            Settled::Theirs
        } else {
            Settled::Not
        };
        Some(Block { base, ours: our_range, theirs: their_range, settled })
    }
}

/// One side's changes, in order.
pub(super) struct Changes<'a> {
    lines: &'a [&'a [u8]],
    /// Lines of the base, and of the side.
    pub(super) hunks: Vec<(Range<usize>, Range<usize>)>,
    next: usize,
}

impl<'a> Changes<'a> {
    pub(super) fn new(base: &[&'a [u8]], lines: &'a [&'a [u8]], deadline: Option<Instant>) -> Self {
        let operations = capture_diff_slices_deadline(Algorithm::Myers, base, lines, deadline);
        let changed = operations.iter().filter(|operation| operation.tag() != DiffTag::Equal);
        let mut hunks: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for operation in changed {
            let (old, new) = (operation.old_range(), operation.new_range());
            match hunks.last_mut() {
                Some(last) if last.0.end == old.start && last.1.end == new.start => {
                    last.0.end = old.end;
                    last.1.end = new.end;
                }
                _ => hunks.push((old, new)),
            }
        }
        Self { lines, hunks, next: 0 }
    }

    fn next_start(&self) -> Option<usize> {
        self.hunks.get(self.next).map(|(old, _)| old.start)
    }

    /// Takes the changes that begin within, or right after, the block.
    fn take_touching(&mut self, end: &mut usize, start: usize) -> usize {
        let first = self.next;
        while let Some((old, _)) = self.hunks.get(self.next) {
            if old.start < start || old.start > *end {
                break;
            }
            *end = (*end).max(old.end);
            self.next += 1;
        }
        self.next - first
    }

    /// The lines that this side has in place of these, all changes of which are taken.
    fn range_of(&self, base: &Range<usize>) -> Range<usize> {
        let shift = |index: usize, at: usize| match index.checked_sub(1).map(|last| &self.hunks[last]) {
            // Between changes both move in step.
            Some((old, new)) => new.end + (at - old.end),
            None => at,
        };
        let first = self.hunks[..self.next].iter().position(|(old, _)| old.start >= base.start);
        shift(first.unwrap_or(self.next), base.start)..shift(self.next, base.end)
    }
}

/// With their ends.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// What git takes for binary.
pub(super) fn is_binary(text: &[u8]) -> bool {
    text.iter().take(8000).any(|byte| *byte == 0)
}
