//! Choosing among changes, by number or by pattern.

use std::path::Path;

use model::diff::{Change, ChangeKind, Diff};
use model::exec::Text;

use crate::render::diff::word;
use crate::render::paint::Paint;
use crate::render::words::clean;

/// One change that can be chosen.
pub(super) struct Choice<'a> {
    change: &'a Change,
    /// Where it lies; of something that was renamed also where it lay.
    paths: Vec<Text>,
}

/// The workspace's changes, then the machine's; what git ignores comes last in each.
pub(super) fn choices(diff: &Diff) -> Vec<Choice<'_>> {
    let mut changes: Vec<&Change> = diff.workspace.iter().chain(&diff.machine).collect();
    changes.sort_by_key(|change| change.ignored);
    let absolute = |path: &Text| match &diff.root {
        Some(root) => Text::from(Path::new(root.as_os_str()).join(path.as_os_str())),
        None => path.clone(),
    };
    let paths = |change: &Change| {
        let from = match &change.kind {
            ChangeKind::Renamed { from } => Some(absolute(from)),
            ChangeKind::Deleted | ChangeKind::Added | ChangeKind::Modified | ChangeKind::TypeChanged => None,
        };
        std::iter::once(absolute(&change.path)).chain(from).collect()
    };
    changes.into_iter().map(|change| Choice { change, paths: paths(change) }).collect()
}

pub(super) fn listed(choices: &[Choice<'_>], paint: Paint) -> String {
    let width = choices.len().to_string().len();
    let lines = choices.iter().enumerate().map(|(at, choice)| {
        let word = format!("{:12}", word(&choice.change.kind));
        let ignored = if choice.change.ignored { paint.dim("  ignored by git") } else { String::new() };
        let path = choice.change.path.display();
        format!("  {:>width$}  {}  {}{ignored}\n", at + 1, paint.dim(&word), clean(&path))
    });
    lines.collect()
}

/// The paths of all that is meant. Every word has to mean something.
pub(super) fn chosen(choices: &[Choice<'_>], line: &str) -> Result<Vec<Text>, NothingMeant> {
    let mut taken = vec![false; choices.len()];
    for word in line.split([' ', ',']).filter(|word| !word.is_empty()) {
        let mut means = false;
        for (at, choice) in choices.iter().enumerate() {
            if is_meant(word, at + 1, &choice.change.path) {
                (taken[at], means) = (true, true);
            }
        }
        if !means {
            return Err(NothingMeant { word: word.to_owned() });
        }
    }
    let meant = choices.iter().zip(taken).filter(|(_, taken)| *taken);
    Ok(meant.flat_map(|(choice, _)| choice.paths.clone()).collect())
}

#[derive(Debug, thiserror::Error)]
#[error("`{word}` is none of them")]
pub(super) struct NothingMeant {
    word: String,
}

fn is_meant(word: &str, number: usize, path: &Text) -> bool {
    let range = match word.split_once('-') {
        Some((first, last)) => first.parse::<usize>().ok().zip(last.parse::<usize>().ok()),
        None => word.parse::<usize>().ok().map(|only| (only, only)),
    };
    match range {
        Some((first, last)) => (first..=last).contains(&number),
        None => fits(word.as_bytes(), &path.0) || in_folder(word.as_bytes(), &path.0),
    }
}

fn in_folder(folder: &[u8], path: &[u8]) -> bool {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"))
}

/// `*` is anything, slashes too, as in git's own patterns; `?` is one of anything.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), None) => fits(rest, path),
        (Some((b'*', rest)), Some((_, later))) => fits(rest, path) || fits(pattern, later),
        (Some((b'?', rest)), Some((_, later))) => fits(rest, later),
        (Some((letter, rest)), Some((same, later))) if letter == same => fits(rest, later),
        (Some(_) | None, Some(_) | None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[track_caller]
    fn means(line: &str, paths: &[&str]) {
        let diff = samples::diff();
        let chosen = chosen(&choices(&diff), line).unwrap();
        assert_eq!(chosen, paths.iter().map(|path| Text::from(*path)).collect::<Vec<_>>(), "{line}");
    }

    #[test]
    fn numbers_ranges_patterns_and_folders() {
        let root = "/home/ada/src/app";
        let at = |path: &str| format!("{root}/{path}");
        means("", &[]);
        means("1", &[&at("old.rs")]);
        means("3-4, 1", &[&at("old.rs"), &at("current"), &at("docs")]);
        means("*.rs", &[&at("old.rs")]);
        means("library", &[&at("library"), &at("lib")]);
        means("target", &[&at("target/debug/app"), &at("target/debug/lib")]);
        means("t*/l?b", &[&at("target/debug/lib")]);
        means("/usr", &["/usr/local/bin/x"]);
        let diff = samples::diff();
        for bad in ["99", "nothing", "1 *.c", "0"] {
            assert!(chosen(&choices(&diff), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_change_has_a_number() {
        insta::assert_snapshot!(listed(&choices(&samples::diff()), Paint::Plain), @r"
        1  deleted       old.rs
        2  added         a\nb\u{1b}[2J
        3  modified      current
        4  type changed  docs
        5  renamed       library
        6  modified      logo.png
        7  modified      /usr/local/bin/x
        8  added         target/debug/app  ignored by git
        9  added         target/debug/lib  ignored by git
        ");
    }
}
