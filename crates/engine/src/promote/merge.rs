//! Merging two changes of one text, line by line.
//!
//! On `similar`, which the diff uses already, instead of a crate of its own: three-way merging is a walk over two lists of
//! changes, and what counts as a conflict is ours to say. As with git, changes that touch each other are one.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// The text with both changes; `None` where they are in each other's way, or it is not text.
pub(super) fn merge(before: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if [before, ours, theirs].iter().any(|text| is_binary(text)) {
        return None;
    }
    let (base, ours, theirs) = (lines(before), lines(ours), lines(theirs));
    let (mut left, mut right) = (Changes::new(&base, &ours), Changes::new(&base, &theirs));
    let mut merged = Vec::new();
    let mut at = 0;
    while let Some(start) = left.next_start().into_iter().chain(right.next_start()).min() {
        let mut block = Block { start, end: start, ours: 0, theirs: 0 };
        // Each change that touches the block may make it longer, so that it touches the next.
        loop {
            let taken = left.take_touching(&mut block.end, block.start);
            let more = right.take_touching(&mut block.end, block.start);
            block.ours += taken;
            block.theirs += more;
            if taken + more == 0 {
                break;
            }
        }
        merged.extend_from_slice(&base[at..block.start]);
        let (our_lines, their_lines) = (left.lines_of(&block), right.lines_of(&block));
        if block.theirs == 0 || our_lines == their_lines {
            merged.extend_from_slice(our_lines);
        } else if block.ours == 0 {
            merged.extend_from_slice(their_lines);
        } else {
            return None;
        }
        at = block.end;
    }
    merged.extend_from_slice(&base[at..]);
    Some(merged.concat())
}

/// Lines of the base that are changed, by how many changes of each side.
struct Block {
    start: usize,
    end: usize,
    ours: usize,
    theirs: usize,
}

/// One side's changes, in order.
struct Changes<'a> {
    lines: &'a [&'a [u8]],
    /// Lines of the base, and of the side.
    hunks: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    next: usize,
}

impl<'a> Changes<'a> {
    fn new(base: &[&'a [u8]], lines: &'a [&'a [u8]]) -> Self {
        let operations = capture_diff_slices(Algorithm::Myers, base, lines);
        let changed = operations.iter().filter(|operation| operation.tag() != DiffTag::Equal);
        let mut hunks: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> = Vec::new();
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

    /// What this side has in place of the block.
    fn lines_of(&self, block: &Block) -> &'a [&'a [u8]] {
        let shift = |index: usize, at: usize| match index.checked_sub(1).map(|last| &self.hunks[last]) {
            // Between changes both move in step.
            Some((old, new)) => new.end + (at - old.end),
            None => at,
        };
        let first = self.hunks[..self.next].iter().position(|(old, _)| old.start >= block.start);
        let start = shift(first.unwrap_or(self.next), block.start);
        let end = shift(self.next, block.end);
        &self.lines[start..end]
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// What git takes for binary.
fn is_binary(text: &[u8]) -> bool {
    text.iter().take(8000).any(|byte| *byte == 0)
}
