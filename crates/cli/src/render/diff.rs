//! `zeno diff`.

use std::path::Path;

use model::diff::{Change, ChangeKind, Diff, Entry};
use model::exec::Text;
use model::files::FileKind;
use model::units::Size;

use super::paint::Paint;
use super::words::{clean, count, path};

/// What changed, one line each, under a heading for the workspace and one for the machine.
pub(crate) fn overview(diff: &Diff, home: Option<&Path>, paint: Paint) -> String {
    let mut text = String::new();
    if !diff.workspace.is_empty() {
        let root = diff.root.as_ref().map(|root| path(root, home)).unwrap_or_default();
        text += &section("workspace", &root, &diff.workspace, paint);
    }
    if !diff.machine.is_empty() {
        text += &section("machine", "", &diff.machine, paint);
    }
    text + &asides(diff, home, paint)
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

fn section(title: &str, root: &str, changes: &[Change], paint: Paint) -> String {
    let mut heading = paint.bold(title);
    if !root.is_empty() {
        heading += &format!("  {root}");
    }
    let mut text = format!("{heading}  {}\n", paint.dim(&tally(changes)));
    for change in changes {
        text += &line(change, paint);
    }
    text
}

/// `2 deleted, 1 added`.
fn tally(changes: &[Change]) -> String {
    let words = ["deleted", "added", "modified", "renamed", "type changed"];
    let told = words.iter().filter_map(|word| {
        let number = changes.iter().filter(|change| self::word(&change.kind) == *word).count();
        (number > 0).then(|| format!("{number} {word}"))
    });
    told.collect::<Vec<_>>().join(", ")
}

fn line(change: &Change, paint: Paint) -> String {
    let word = format!("{:12}", word(&change.kind));
    let word = match &change.kind {
        ChangeKind::Deleted => paint.red(&word),
        ChangeKind::Added => paint.green(&word),
        ChangeKind::Modified | ChangeKind::Renamed { .. } | ChangeKind::TypeChanged => paint.yellow(&word),
    };
    let details = details(change);
    let details = if details.is_empty() { details } else { format!("  {}", paint.dim(&details)) };
    format!("  {word}  {}{details}\n", shown(change))
}

fn word(kind: &ChangeKind) -> &'static str {
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

/// What there is to say beyond the word and the path.
fn details(change: &Change) -> String {
    let mut told = Vec::new();
    if let ChangeKind::Renamed { from } = &change.kind {
        told.push(format!("from {}", clean_path(from)));
    }
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => differences(change, before, after, &mut told),
        (None, Some(entry)) | (Some(entry), None) => told.extend(size(entry)),
        (None, None) => {}
    }
    if change.binary {
        told.push("binary".to_owned());
    }
    told.join(", ")
}

fn differences(change: &Change, before: &Entry, after: &Entry, told: &mut Vec<String>) {
    if before.kind != after.kind {
        told.push(format!("{} -> {}", kind(before.kind), kind(after.kind)));
    } else if before.size != after.size && after.kind == FileKind::File {
        told.push(format!("{} -> {}", Size(before.size), Size(after.size)));
    }
    if before.mode != after.mode && after.kind != FileKind::Symlink {
        told.push(format!("mode {:03o} -> {:03o}", before.mode, after.mode));
    }
    if (before.uid, before.gid) != (after.uid, after.gid) {
        let owner = |entry: &Entry| format!("{}:{}", entry.uid, entry.gid);
        told.push(format!("owner {} -> {}", owner(before), owner(after)));
    }
    if let (Some(was), true) = (&before.target, before.target != after.target) {
        told.push(format!("was -> {}", clean_path(was)));
    }
    if !change.xattrs.is_empty() {
        let names: Vec<_> = change.xattrs.iter().map(clean_path).collect();
        told.push(format!("attributes {}", names.join(" ")));
    }
}

fn size(entry: &Entry) -> Option<String> {
    (entry.kind == FileKind::File).then(|| Size(entry.size).to_string())
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "folder",
        FileKind::Symlink => "link",
        FileKind::Fifo => "pipe",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }
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
