//! What a patch leaves out, said where it does not get into the patch.

use std::collections::HashSet;
use std::path::Path;

use model::diff::{Change, ChangeKind, Diff};
use model::files::FileKind;

use crate::render::words::count;

/// One line, unless the patch has everything.
pub(super) fn beyond(diff: &Diff, which: &str) -> Option<String> {
    let ignored = diff.workspace.iter().filter(|change| change.ignored).count();
    let full = full_folders(diff);
    let unknown = diff.workspace.iter().filter(|change| !change.ignored && is_beyond(change, &full)).count();
    let left = [
        (diff.machine.len(), "change of the machine", "changes of the machine"),
        (ignored, "ignored change", "ignored changes"),
        (
            unknown,
            "change that no patch can tell (owner, rights, attributes, an empty folder, a pipe)",
            "changes that no patch can tell (owners, rights, attributes, empty folders, pipes)",
        ),
        (diff.unread.len(), "path that could not be read", "paths that could not be read"),
    ];
    let left: Vec<String> = left
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| count(number as u64, one, many))
        .collect();
    if left.is_empty() {
        return None;
    }
    Some(format!("not in the patch: {} (zeno diff {which} --ignored lists them)\n", left.join(", ")))
}

/// A patch knows files and links, their contents and whether they can be executed.
fn is_beyond(change: &Change, full: &HashSet<&Path>) -> bool {
    let can_execute = |mode: u32| mode & 0o100 != 0;
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    match before.or(after).map(|entry| entry.kind) {
        Some(FileKind::Directory)
            if change.kind == ChangeKind::Added || change.kind == ChangeKind::Deleted =>
        {
            !full.contains(Path::new(change.path.as_os_str()))
        }
        Some(FileKind::Directory) => change.kind == ChangeKind::Modified,
        Some(FileKind::Fifo | FileKind::Socket | FileKind::Device) => true,
        Some(FileKind::File | FileKind::Symlink) | None => match (before, after) {
            (Some(before), Some(after)) if change.kind == ChangeKind::Modified => {
                let is_told = change.contents || can_execute(before.mode) != can_execute(after.mode);
                !is_told || !change.xattrs.is_empty() || (before.uid, before.gid) != (after.uid, after.gid)
            }
            _ => false,
        },
    }
}

/// Folders with other changes in them: those make the folder, or its end.
fn full_folders(diff: &Diff) -> HashSet<&Path> {
    let paths = diff.workspace.iter().map(|change| Path::new(change.path.as_os_str()));
    paths.flat_map(|path| path.ancestors().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use model::diff::Entry;
    use model::exec::Text;

    use super::*;

    fn entry(kind: FileKind, mode: u32) -> Entry {
        Entry { kind, size: 0, mode, uid: 0, gid: 0, target: None }
    }

    fn change(path: &str, kind: ChangeKind, before: Option<Entry>, after: Option<Entry>) -> Change {
        let contents = kind != ChangeKind::Modified;
        let path = Text(path.as_bytes().to_vec());
        let (binary, xattrs, ignored, lines, by) = (false, Vec::new(), false, None, None);
        Change { path, kind, before, after, contents, binary, xattrs, ignored, lines, by }
    }

    #[test]
    fn only_what_a_patch_cannot_tell_is_told() {
        let file = |mode| Some(entry(FileKind::File, mode));
        let folder = || Some(entry(FileKind::Directory, 0o755));
        let mut diff = Diff {
            workspace: vec![
                change("new/file", ChangeKind::Added, None, file(0o644)),
                change("new", ChangeKind::Added, None, folder()),
                change("script", ChangeKind::Modified, file(0o644), file(0o755)),
            ],
            ..Diff::default()
        };
        assert_eq!(beyond(&diff, "a"), None);
        diff.workspace.push(change("empty", ChangeKind::Added, None, folder()));
        diff.workspace.push(change("rights", ChangeKind::Modified, file(0o644), file(0o600)));
        let ignored = change("build", ChangeKind::Added, None, file(0o644));
        diff.workspace.push(Change { ignored: true, ..ignored });
        diff.machine.push(change("/etc/motd", ChangeKind::Added, None, file(0o644)));
        assert_eq!(
            beyond(&diff, "a").unwrap(),
            "not in the patch: 1 change of the machine, 1 ignored change, 2 changes that no patch can tell \
             (owners, rights, attributes, empty folders, pipes) (zeno diff a --ignored lists them)\n"
        );
    }
}
