//! `zeno diff`.

mod details;
mod stat;

use std::collections::BTreeMap;
use std::path::Path;

use model::diff::{Change, ChangeKind, Diff};
use model::exec::Text;
use model::files::FileKind;

use super::paint::Paint;
use super::words::{clean, count, path};
pub(crate) use stat::stat;

/// How it is to be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    pub(crate) ignored: Ignored,
    pub(crate) home: Option<&'a Path>,
    pub(crate) paint: Paint,
    /// Where two are compared.
    pub(crate) names: Option<Names<'a>>,
}

/// What the two that are compared are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) one: &'a str,
    pub(crate) other: &'a str,
}

/// What becomes of changes that git ignores: a build writes thousands of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// By folder, with how to see them.
    Counted,
    Listed,
}

/// What changed, one line each, under a heading for the workspace and one for the machine.
pub(crate) fn overview(diff: &Diff, look: Look<'_>) -> String {
    sections(diff, look, |changes| changes.iter().map(|change| line(change, look)).collect())
}

/// `D`, `A`, `M`, `T` or `R100`, and the path; the workspace first.
pub(crate) fn name_status(diff: &Diff) -> String {
    let lines = diff.workspace.iter().chain(&diff.machine).map(|change| {
        let path = clean_path(&change.path);
        match &change.kind {
            ChangeKind::Deleted => format!("D\t{path}\n"),
            ChangeKind::Added => format!("A\t{path}\n"),
            ChangeKind::Modified => format!("M\t{path}\n"),
            ChangeKind::TypeChanged => format!("T\t{path}\n"),
            ChangeKind::Renamed { from } => format!("R100\t{}\t{path}\n", clean_path(from)),
        }
    });
    lines.collect()
}

/// The workspace, the machine, and what is not listed.
fn sections(diff: &Diff, look: Look<'_>, body: impl Fn(&[&Change]) -> String) -> String {
    let Look { home, paint, .. } = look;
    let (left_out, workspace): (Vec<_>, Vec<_>) =
        diff.workspace.iter().partition(|change| change.ignored && look.ignored == Ignored::Counted);
    let machine: Vec<_> = diff.machine.iter().collect();
    let root = diff.root.as_ref().map(|root| path(root, home));
    let mut text = String::new();
    for (title, place, changes) in [("workspace", root, workspace), ("machine", None, machine)] {
        if !changes.is_empty() {
            let place = place.map(|place| format!("  {place}")).unwrap_or_default();
            text += &format!("{}{place}  {}\n", paint.bold(title), paint.dim(&tally(&changes)));
            text += &body(&changes);
        }
    }
    text + &ignored(&left_out, paint) + &asides(diff, home, paint)
}

/// `2 deleted, 1 added`.
fn tally(changes: &[&Change]) -> String {
    let words = ["deleted", "added", "modified", "renamed", "type changed"];
    let told = words.iter().filter_map(|word| {
        let number = changes.iter().filter(|change| self::word(&change.kind) == *word).count();
        (number > 0).then(|| format!("{number} {word}"))
    });
    told.collect::<Vec<_>>().join(", ")
}

fn line(change: &Change, look: Look<'_>) -> String {
    let paint = look.paint;
    let details = details::details(change, look.names);
    let details = if details.is_empty() { details } else { format!("  {}", paint.dim(&details)) };
    format!(
        "  {}  {}{details}\n",
        painted(change, &format!("{:12}", word(&change.kind)), paint),
        shown(change)
    )
}

/// In the colour of its kind.
fn painted(change: &Change, text: &str, paint: Paint) -> String {
    match &change.kind {
        ChangeKind::Deleted => paint.red(text),
        ChangeKind::Added => paint.green(text),
        ChangeKind::Modified | ChangeKind::Renamed { .. } | ChangeKind::TypeChanged => paint.yellow(text),
    }
}

pub(crate) fn word(kind: &ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Deleted => "deleted",
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Renamed { .. } => "renamed",
        ChangeKind::TypeChanged => "type changed",
    }
}

/// The path; a folder's with a slash, a link's with its target.
fn shown(change: &Change) -> String {
    let mut text = clean_path(&change.path);
    let Some(entry) = change.after.as_ref().or(change.before.as_ref()) else { return text };
    if entry.kind == FileKind::Directory {
        text.push('/');
    }
    if let Some(target) = &entry.target {
        text += &format!(" -> {}", clean_path(target));
    }
    text
}

/// `12 changes that git ignores`, by the folder or file at the top.
fn ignored(changes: &[&Change], paint: Paint) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut tops: BTreeMap<String, u64> = BTreeMap::new();
    for change in changes {
        let top = change.path.0.split(|byte| *byte == b'/').next().unwrap_or_default();
        *tops.entry(clean_path(&Text(top.to_vec()))).or_default() += 1;
    }
    let tops: Vec<_> = tops.iter().map(|(top, number)| format!("{top} {number}")).collect();
    let number = count(changes.len() as u64, "change", "changes");
    let hint = paint.dim("(--ignored lists them)");
    format!("{}  {number} that git ignores: {} {hint}\n", paint.bold("ignored"), tops.join(", "))
}

/// What is not listed path by path, and why.
fn asides(diff: &Diff, home: Option<&Path>, paint: Paint) -> String {
    let mut text = String::new();
    if !diff.git.is_empty() {
        let folders: Vec<_> = diff.git.iter().map(|folder| path(folder, home)).collect();
        let folders = folders.join(", ");
        text += &format!("{}  {folders} changed; git's own files are not listed\n", paint.bold("git"));
    }
    if !diff.unread.is_empty() {
        let number = count(diff.unread.len() as u64, "path", "paths");
        text += &format!("{}  {number} that zeno may not read\n", paint.bold("unread"));
        for unread in &diff.unread {
            text += &format!("  {}\n", path(unread, home));
        }
    }
    text
}

fn clean_path(text: &Text) -> String {
    clean(&text.display()).into_owned()
}

#[cfg(test)]
mod tests {
    use model::diff::By;

    use super::*;
    use crate::render::samples;

    fn look(ignored: Ignored, paint: Paint) -> Look<'static> {
        Look { ignored, home: Some(Path::new("/home/ada")), paint, names: None }
    }

    #[test]
    fn every_kind_of_change() {
        insta::assert_snapshot!(overview(&samples::diff(), look(Ignored::Counted, Paint::Plain)), @r"
        workspace  ~/src/app  1 deleted, 1 added, 2 modified, 1 renamed, 1 type changed
          deleted       old.rs  2100B
          added         a\nb\u{1b}[2J  12B
          modified      current -> v2  was -> v1
          type changed  docs/  file -> folder
          renamed       library/  from lib
          modified      logo.png  900B -> 1800B, binary
        machine  1 modified
          modified      /usr/local/bin/x  mode 644 -> 755, owner 1000:1000 -> 0:0, attributes user.note
        ignored  2 changes that git ignores: target 2 (--ignored lists them)
        git  ~/src/app/.git changed; git's own files are not listed
        unread  1 path that zeno may not read
          ~/secret
        ");
        insta::assert_snapshot!(name_status(&samples::diff()), @r"
        D	old.rs
        A	a\nb\u{1b}[2J
        M	current
        T	docs
        R100	lib	library
        M	logo.png
        A	target/debug/app
        A	target/debug/lib
        M	/usr/local/bin/x
        ");
        insta::assert_snapshot!(stat(&samples::diff(), look(Ignored::Listed, Paint::Plain)), @r"
        workspace  ~/src/app  1 deleted, 3 added, 2 modified, 1 renamed, 1 type changed
          old.rs           | 80 ----------------------------------------
          a\nb\u{1b}[2J    | 3 ++
          current -> v2    | modified
          docs/            | type changed
          library/         | renamed
          logo.png         | binary 900B -> 1800B
          target/debug/app | added
          target/debug/lib | added
          8 paths, 3 lines added, 80 lines removed
        machine  1 modified
          /usr/local/bin/x | modified
          1 path, 0 lines added, 0 lines removed
        git  ~/src/app/.git changed; git's own files are not listed
        unread  1 path that zeno may not read
          ~/secret
        ");
    }

    #[test]
    fn which_of_two_changed_it() {
        let mut diff = samples::diff();
        diff.workspace.truncate(3);
        (diff.machine, diff.git, diff.unread) = Default::default();
        for (change, by) in diff.workspace.iter_mut().zip([By::One, By::Other, By::Both]) {
            change.by = Some(by);
        }
        let names = Some(Names { one: "web", other: "try" });
        let look = Look { names, ..look(Ignored::Counted, Paint::Plain) };
        insta::assert_snapshot!(overview(&diff, look), @r"
        workspace  ~/src/app  1 deleted, 1 added, 1 modified
          deleted       old.rs  2100B, only web changed it
          added         a\nb\u{1b}[2J  12B, only try changed it
          modified      current -> v2  was -> v1, both changed it
        ");
    }

    #[test]
    fn colours() {
        let mut diff = samples::diff();
        diff.workspace.truncate(2);
        (diff.machine, diff.git, diff.unread) = Default::default();
        let shown = overview(&diff, look(Ignored::Counted, Paint::Colour)).replace('\x1b', "^");
        insta::assert_snapshot!(shown, @r"
        ^[1mworkspace^[0m  ~/src/app  ^[2m1 deleted, 1 added^[0m
          ^[1;31mdeleted     ^[0m  old.rs  ^[2m2100B^[0m
          ^[32madded       ^[0m  a\nb\u{1b}[2J  ^[2m12B^[0m
        ");
    }
}
