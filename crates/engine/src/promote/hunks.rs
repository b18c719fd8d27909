//! The places in which two versions of a text are in each other's way, for whoever has to decide.

use std::ops::Range;
use std::time::{Duration, Instant};

use model::exec::Text;
use model::promotion::{Excerpt, Hunk};

use super::merge::{Blocks, Changes, Settled, is_binary, lines};

/// A text on three sides. One that is absent has no such file there, or nobody knows what was in it.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) before: Option<Vec<u8>>,
    pub(super) ours: Option<Vec<u8>>,
    pub(super) theirs: Option<Vec<u8>>,
}

/// What is told of them, and how many lines are not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) hunks: Vec<Hunk>,
    pub(super) more: u64,
}

impl Texts {
    /// As many hunks as fit into this many lines, from the first.
    pub(super) fn hunks(&self, most: usize) -> Told {
        let all = [&self.before, &self.ours, &self.theirs];
        if all.into_iter().flatten().any(|text| is_binary(text)) {
            return Told::default();
        }
        let all = all.map(|text| text.as_deref().map(lines));
        let [before, ours, theirs] = &all;
        let mut left = most.min(LINES);
        let mut told = Told::default();
        for place in places(before.as_deref(), ours.as_deref(), theirs.as_deref()) {
            let mut sides = all.iter().zip(place).map(|(text, range)| {
                let (text, range) = (text.as_ref()?, range?);
                Some(excerpt(text, range))
            });
            let mut side = || sides.next().flatten();
            let hunk = Hunk { before: side(), ours: side(), theirs: side() };
            let excerpts = [&hunk.before, &hunk.ours, &hunk.theirs].into_iter().flatten();
            let (shown, count) = excerpts.fold((0, 0), |(shown, count), excerpt: &Excerpt| {
                (shown + excerpt.lines.len(), count + excerpt.count)
            });
            if shown > left {
                // The next may be shorter, but who reads them wants them without gaps.
                left = 0;
                told.more += count;
                continue;
            }
            left -= shown;
            told.more += count - shown as u64;
            told.hunks.push(hunk);
        }
        told
    }
}

/// Lines of what was before, of ours and of theirs that belong together.
type Place = [Option<Range<usize>>; 3];

fn places(before: Option<&[&[u8]]>, ours: Option<&[&[u8]]>, theirs: Option<&[&[u8]]>) -> Vec<Place> {
    let deadline = Instant::now().checked_add(PATIENCE);
    match (before, ours, theirs) {
        (Some(before), Some(ours), Some(theirs)) => {
            let blocks = Blocks::new(before, ours, theirs, deadline);
            let unsettled = blocks.filter(|block| block.settled == Settled::Not);
            let places: Vec<Place> =
                unsettled.map(|block| [Some(block.base), Some(block.ours), Some(block.theirs)]).collect();
            // Where they could be merged, and are in conflict for another reason, it still matters how they differ.
            if places.is_empty() {
                differences(ours, theirs, |ours, theirs| [None, ours, theirs])
            } else {
                places
            }
        }
        (None, Some(ours), Some(theirs)) => differences(ours, theirs, |ours, theirs| [None, ours, theirs]),
        (Some(before), Some(ours), None) => differences(before, ours, |before, ours| [before, ours, None]),
        (Some(before), None, Some(theirs)) => {
            differences(before, theirs, |before, theirs| [before, None, theirs])
        }
        (None, Some(_), None) | (None, None, Some(_)) | (_, None, None) => Vec::new(),
    }
}

fn differences(
    one: &[&[u8]],
    other: &[&[u8]],
    place: impl Fn(Option<Range<usize>>, Option<Range<usize>>) -> Place,
) -> Vec<Place> {
    let changes = Changes::new(one, other, Instant::now().checked_add(PATIENCE));
    changes.hunks.into_iter().map(|(one, other)| place(Some(one), Some(other))).collect()
}

fn excerpt(text: &[&[u8]], range: Range<usize>) -> Excerpt {
    let lines = text[range.clone()].iter().take(LONGEST).take_while(|line| line.len() <= WIDEST);
    Excerpt {
        first: range.start as u64 + 1,
        count: range.len() as u64,
        lines: lines.map(|line| Text(line.to_vec())).collect(),
    }
}

/// Of one path: two screens.
const LINES: usize = 60;
/// Of one side of a hunk, so that the first is always told of all sides.
const LONGEST: usize = LINES / 3;
/// Bytes of a line that somebody wrote by hand. A longer one is counted and not told.
const WIDEST: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// Hunks as `first+count: lines` of what was before, ours and theirs, and how many lines are left out.
    #[track_caller]
    fn check(before: Option<&str>, ours: Option<&str>, theirs: Option<&str>, expected: &[&str], more: u64) {
        let text = |text: Option<&str>| text.map(|text| text.replace(' ', "\n").into_bytes());
        let texts = Texts { before: text(before), ours: text(ours), theirs: text(theirs) };
        let told = texts.hunks(usize::MAX);
        let side = |excerpt: &Option<Excerpt>| match excerpt {
            Some(Excerpt { first, count, lines }) => {
                let lines: Vec<_> = lines.iter().map(|line| line.display().trim_end().to_owned()).collect();
                format!("{first}+{count}:{}", lines.join(","))
            }
            None => "-".to_owned(),
        };
        let hunks: Vec<_> = told
            .hunks
            .iter()
            .map(|hunk| [&hunk.before, &hunk.ours, &hunk.theirs].map(side).join(" | "))
            .collect();
        assert_eq!(
            (hunks.iter().map(String::as_str).collect::<Vec<_>>(), told.more),
            (expected.to_vec(), more)
        );
    }

    #[test]
    fn only_what_is_in_each_others_way_is_told_with_its_lines() {
        // What only one side changed is not in the way, but it moves the numbers.
        check(
            Some("a b c d e "),
            Some("a X Y c d e "),
            Some("new a Z c d E "),
            &["2+1:b | 2+2:X,Y | 3+1:Z"],
            0,
        );
        check(Some("a b c "), Some("a c "), Some("a B c "), &["2+1:b | 2+0: | 2+1:B"], 0);
        check(
            Some("a b c d e f g "),
            Some("1 b c d e f 7 "),
            Some("one b c d e f seven "),
            &["1+1:a | 1+1:1 | 1+1:one", "7+1:g | 7+1:7 | 7+1:seven"],
            0,
        );
    }

    #[test]
    fn a_side_that_is_not_there() {
        check(None, Some("a x c "), Some("a y c "), &["- | 2+1:x | 2+1:y"], 0);
        check(Some("a b c "), Some("a B c "), None, &["2+1:b | 2+1:B | -"], 0);
        check(Some("a b c "), None, Some("a B c "), &["2+1:b | - | 2+1:B"], 0);
        check(None, None, Some("a "), &[], 0);
        check(Some("a b "), Some("A b "), Some("a b "), &["- | 1+1:A | 1+1:a"], 0);
        check(Some("a b "), Some("a\0 "), Some("A b "), &[], 0);
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let many =
            |word: &str, number: usize| (0..number).map(|line| format!("{word}{line} ")).collect::<String>();
        let (ours, theirs) = (many("o", 30), many("t", 25));
        let first =
            |word: &str| (0..LONGEST).map(|line| format!("{word}{line}")).collect::<Vec<_>>().join(",");
        let hunk = format!("1+1:a | 1+30:{} | 1+25:{}", first("o"), first("t"));
        check(Some("a b "), Some(&format!("{ours}b ")), Some(&format!("{theirs}b ")), &[&hunk], 15);
        // The second hunk does not fit any more, and nothing after it is told either.
        let both = |text: &str, end: &str| format!("{text}b c {text}d e {end} ");
        let base = "a b c a d e f ";
        let more = 15 + (1 + 30 + 25) + 3;
        check(Some(base), Some(&both(&ours, "1")), Some(&both(&theirs, "2")), &[&hunk], more);
        let wide = "w".repeat(WIDEST);
        check(Some("a "), Some(&format!("x {wide} y ")), Some("z "), &["1+1:a | 1+3:x | 1+1:z"], 2);
    }
}
