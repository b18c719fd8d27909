//! Answers that a model can take in: so much at once, what was left out, and where the rest begins.

use model::{Code, Problem};
use serde::Serialize;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// Where the next part begins.
    pub(super) next_cursor: Option<String>,
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
    pub(super) rest: Rest,
}

/// What comes after a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Rest {
    /// How many are left out.
    pub(super) left_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

impl Rest {
    /// A line for readers, where there is something to say.
    pub(super) fn line(&self, what: &str) -> String {
        match &self.next_cursor {
            Some(cursor) => {
                format!("({} more {what}: call again with cursor \"{cursor}\")\n", self.left_out)
            }
            None => String::new(),
        }
    }
}

/// Where to go on, as a tool said it before.
pub(super) fn place(cursor: Option<&str>) -> Result<u64, Problem> {
    match cursor.map(str::parse) {
        None => Ok(0),
        Some(Ok(place)) => Ok(place),
        Some(Err(error)) => {
            let problem = Problem::from_error(Code::BadRequest, &error);
            let causes = vec![problem.detail];
            let detail = "`cursor` is not one that this tool gave";
            Err(Problem {
                causes,
                ..Problem::new(Code::BadRequest, detail).hint("leave it out to begin at the beginning")
            })
        }
    }
}

/// So many of a list, from there on.
pub(super) fn items<T>(all: Vec<T>, from: u64, at_most: usize) -> Items<T> {
    let total = all.len() as u64;
    let items: Vec<T> =
        all.into_iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).take(at_most).collect();
    let end = from.min(total) + items.len() as u64;
    let left_out = total - end;
    Items { items, rest: Rest { left_out, next_cursor: (left_out > 0).then(|| end.to_string()) } }
}

/// The beginning of what begins at `from`: whole characters, and whole lines where there is more.
pub(super) fn text(bytes: &[u8], from: u64, is_end: bool) -> Page {
    let taken =
        if is_end && bytes.len() <= MOST { bytes.len() } else { cut(&bytes[..bytes.len().min(MOST)]) };
    let is_whole = is_end && taken == bytes.len();
    Page {
        text: String::from_utf8_lossy(&bytes[..taken]).into_owned(),
        next_cursor: (!is_whole).then(|| (from + taken as u64).to_string()),
    }
}

/// After the last line, or, where one is longer than a page, after the last whole character.
fn cut(bytes: &[u8]) -> usize {
    if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return end + 1;
    }
    let is_begin = |byte: &u8| *byte & 0xc0 != 0x80;
    match bytes.iter().rposition(is_begin) {
        // A character is at most four bytes long.
        Some(last) if last > 0 && bytes.len() - last < 4 && std::str::from_utf8(&bytes[last..]).is_err() => {
            last
        }
        Some(_) | None => bytes.len(),
    }
}

/// Bytes of text in one answer.
pub(super) const MOST: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_comes_in_whole_lines_and_nothing_is_lost() {
        let all: Vec<u8> = (0..20_000).flat_map(|number| format!("line {number} ü\n").into_bytes()).collect();
        let (mut place, mut read) = (0, Vec::new());
        loop {
            let from = usize::try_from(place).unwrap();
            let page = text(&all[from..], place, true);
            assert!(page.text.len() <= MOST && page.text.ends_with('\n'));
            read.extend(page.text.into_bytes());
            match page.next_cursor {
                Some(cursor) => place = super::place(Some(&cursor)).unwrap(),
                None => break,
            }
        }
        assert_eq!(read, all);
    }

    #[test]
    fn a_line_longer_than_a_page_is_cut_between_characters() {
        let all = "ü".repeat(MOST);
        let page = text(&all.as_bytes()[1..], 1, true);
        assert!(page.text.len() < MOST + 3 && page.text.ends_with('ü'), "{}", page.text.len());
        assert_eq!(text(b"all of it", 0, true), Page { text: "all of it".to_owned(), next_cursor: None });
    }

    #[test]
    fn a_list_says_how_much_is_left_out() {
        let first = items((0..5).collect(), 0, 2);
        assert_eq!(first.items, [0, 1]);
        assert_eq!(first.rest.line("files"), "(3 more files: call again with cursor \"2\")\n");
        let last = items((0..5).collect(), 4, 2);
        assert_eq!((last.items, last.rest), (vec![4], Rest::default()));
        assert_eq!(items((0..5).collect(), 9, 2).rest, Rest::default());
        assert_eq!(place(Some("x")).unwrap_err().code, Code::BadRequest);
    }
}
