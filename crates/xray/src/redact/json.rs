//! JSON as it comes: whole, several values one after the other, or cut off in the middle.
//!
//! Read letter by letter and not by a parser, because half of a document is no document, and its secrets are as good as those of
//! a whole one. What is no JSON comes out as it went in.

use super::{REDACTED, Redactor, is_field};

/// The same text without the values of fields that are secrets, however deep, and without what looks like one in a string.
pub(super) fn shown(redactor: &Redactor, text: &str) -> String {
    let mut reader = Reader { rest: text, shown: String::with_capacity(text.len()), open: Vec::new() };
    while let Some(letter) = reader.rest.chars().next() {
        match letter {
            '"' => reader.string(redactor),
            '{' | '[' => reader.enter(letter == '{'),
            '}' | ']' => reader.leave(),
            '-' | '0'..='9' | 't' | 'f' => reader.word(),
            _ => reader.mark(letter),
        }
    }
    reader.shown
}

struct Reader<'a> {
    rest: &'a str,
    shown: String,
    open: Vec<Open>,
}

/// An object or a list whose end has not come yet.
struct Open {
    place: Place,
    /// Nothing of it is shown: it is the value of a secret.
    is_hidden: bool,
}

/// What comes next in it.
enum Place {
    /// One of a list.
    Item,
    /// The name of a field.
    Name,
    /// The value of one.
    Value { is_secret: bool },
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn is_hidden(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_hidden)
    }

    /// What stands here would be the value of a secret.
    fn is_secret(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.place, Place::Value { is_secret: true }))
    }

    fn show(&mut self, text: &str) {
        if !self.is_hidden() {
            self.shown.push_str(text);
        }
    }

    fn mark(&mut self, letter: char) {
        let text = self.take(letter.len_utf8());
        if letter == ','
            && let Some(open) = self.open.last_mut()
            && matches!(open.place, Place::Value { .. })
        {
            open.place = Place::Name;
        }
        self.show(text);
    }

    fn enter(&mut self, is_object: bool) {
        let mark = self.take(1);
        let is_hidden = self.is_secret() || self.is_hidden();
        if self.is_secret() {
            self.show(&format!("\"{REDACTED}\""));
        } else {
            self.show(mark);
        }
        self.open.push(Open { place: if is_object { Place::Name } else { Place::Item }, is_hidden });
    }

    fn leave(&mut self) {
        let mark = self.take(1);
        let was_hidden = self.open.pop().is_some_and(|open| open.is_hidden);
        if !was_hidden {
            self.show(mark);
        }
    }

    fn string(&mut self, redactor: &Redactor) {
        let length = string_length(self.rest);
        let raw = self.take(length);
        let plain = plain(raw);
        if self.is_secret() {
            return self.show(&format!("\"{REDACTED}\""));
        }
        if let Some(open) = self.open.last_mut().filter(|open| matches!(open.place, Place::Name)) {
            open.place = Place::Value { is_secret: is_field(&plain) };
        }
        let shown = redactor.text(&plain);
        if shown == plain {
            self.show(raw);
        } else {
            self.show(&serde_json::Value::from(shown).to_string());
        }
    }

    /// A number, or what is true or not.
    fn word(&mut self) {
        let is_end =
            |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | '+' | '-' | '_');
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let word = self.take(length.max(1));
        if self.is_secret() {
            self.show(&format!("\"{REDACTED}\""));
        } else {
            self.show(word);
        }
    }
}

/// From quote to quote, or to where the text ends.
fn string_length(text: &str) -> usize {
    let mut is_coded = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_coded => is_coded = false,
            '\\' => is_coded = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// What a string says, its codes read. One that was cut says as much as is there.
fn plain(raw: &str) -> String {
    let read = |text: &str| serde_json::from_str::<String>(text).ok();
    let inner = raw.trim_start_matches('"');
    // A code that is cut off has at most five letters before its end.
    let cuts = (0..=5).filter_map(|cut| inner.get(..inner.len().checked_sub(cut)?));
    read(raw)
        .or_else(|| cuts.map(|text| format!("\"{text}\"")).find_map(|text| read(&text)))
        .unwrap_or_else(|| inner.to_owned())
}
