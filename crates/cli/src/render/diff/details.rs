//! What there is to say of a change beyond its kind and its path.

use model::diff::{By, Change, ChangeKind, Entry};
use model::files::FileKind;
use model::units::Size;

use super::{Names, clean_path};

pub(super) fn details(change: &Change, names: Option<Names<'_>>) -> String {
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
    if let (Some(by), Some(names)) = (change.by, names) {
        told.push(match by {
            By::One => format!("only {} changed it", names.one),
            By::Other => format!("only {} changed it", names.other),
            By::Both => "both changed it".to_owned(),
        });
    }
    told.join(", ")
}

fn differences(change: &Change, before: &Entry, after: &Entry, told: &mut Vec<String>) {
    if before.kind != after.kind {
        told.push(format!("{} -> {}", kind(before.kind), kind(after.kind)));
    } else if before.size != after.size && after.kind == FileKind::File {
        told.push(format!("{} -> {}", Size(before.size), Size(after.size)));
    }
    if before.mode != after.mode && before.kind == after.kind {
        told.push(format!("mode {:03o} -> {:03o}", before.mode, after.mode));
    }
    if (before.uid, before.gid) != (after.uid, after.gid) {
        let owner = |entry: &Entry| format!("{}:{}", entry.uid, entry.gid);
        told.push(format!("owner {} -> {}", owner(before), owner(after)));
    }
    if let Some(was) = &before.target
        && before.target != after.target
    {
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
