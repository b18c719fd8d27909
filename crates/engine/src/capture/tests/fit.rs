//! Git's index in the frozen copy knows the copies.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix_index::hash::Kind;

use super::super::{FROZEN_ROOT, Frozen, FrozenPart};
use super::Lab;
use super::view::{check, linked_worktree, repository};

/// What git would have to read to know whether it changed, and whether it would not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    fitting: Vec<String>,
    other: Vec<String>,
}

fn known(frozen: &Frozen, part: usize, index: &str) -> Known {
    let file = newest(&frozen.parts[part], Path::new(index));
    let index = gix_index::File::at(file, Kind::Sha1, false, gix_index::decode::Options::default()).unwrap();
    let mut known = Known::default();
    for entry in index.entries() {
        let path = entry.path(&index).to_vec();
        let copy = newest(&frozen.parts[0], Path::new(OsStr::from_bytes(&path)));
        let (copy, stat) = (copy.symlink_metadata().unwrap(), entry.stat);
        let is_known = (u64::from(stat.ino), i64::from(stat.ctime.secs), i64::from(stat.ctime.nsecs))
            == (copy.ino(), copy.ctime(), copy.ctime_nsec());
        let list = if is_known { &mut known.fitting } else { &mut known.other };
        list.push(String::from_utf8(path).unwrap());
    }
    known
}

fn newest(part: &FrozenPart, path: &Path) -> PathBuf {
    let places = part.layers.iter().map(|layer| layer.join(FROZEN_ROOT).join(path));
    places.into_iter().find(|place| place.symlink_metadata().is_ok()).unwrap()
}

/// What was written just now is looked at again, and not trusted until then.
fn settle(lab: &Lab) {
    lab.git(&["status"]);
    std::thread::sleep(Duration::from_millis(60));
}

#[test]
fn every_version_of_an_index_fits_and_what_changed_does_not() {
    for version in ["2", "3", "4"] {
        let mut lab = repository();
        lab.write("src/deep/er.rs", "mod er;\n");
        lab.write("changed", "one\n");
        lab.git(&["add", "."]);
        // An entry with the flags that version 3 is for.
        lab.write("later", "text\n");
        lab.git(&["add", "--intent-to-add", "later"]);
        lab.git(&["update-index", "--index-version", version]);
        settle(&lab);
        lab.write("changed", "two\n");
        std::thread::sleep(Duration::from_millis(60));
        let (_, frozen) = lab.freeze();
        let known = known(&frozen, 0, ".git/index");
        assert_eq!(known.other, ["changed", "later"], "version {version}");
        assert_eq!(known.fitting, [".gitignore", "src/deep/er.rs", "src/main.rs"], "version {version}");
        check(&lab, &frozen, "git status --short", "AM changed\n A later\nA  src/deep/er.rs");
    }
}

#[test]
fn an_index_fits_again_after_each_change_and_a_restart_changes_nothing() {
    let mut lab = repository();
    settle(&lab);
    let (_, first) = lab.freeze();
    assert_eq!(known(&first, 0, ".git/index").other, [""; 0]);
    lab.write("src/main.rs", "fn main() { run() }\n");
    lab.git(&["commit", "-qam", "second"]);
    settle(&lab);
    // The first is held by somebody: this one is a layer on top.
    let (_, second) = lab.freeze();
    assert_eq!(known(&second, 0, ".git/index").other, [""; 0]);
    lab.restart();
    let (_, third) = lab.freeze();
    assert_eq!(third.generation, second.generation);
    assert_eq!(known(&third, 0, ".git/index").other, [""; 0]);
}

#[test]
fn the_index_of_a_linked_worktree_fits_its_files() {
    let (mut lab, _main) = linked_worktree();
    settle(&lab);
    let (_, frozen) = lab.freeze();
    let known = known(&frozen, 1, "worktrees/work/index");
    assert_eq!((known.fitting, known.other), (vec!["file".to_owned()], Vec::new()));
    check(&lab, &frozen, "git fsck 2>&1 && git status --short", "");
}

#[test]
fn an_index_that_is_not_understood_stays_as_it_is() {
    let mut lab = repository();
    settle(&lab);
    let path = lab.path(".git/index");
    let whole = std::fs::read(&path).unwrap();
    for broken in [&whole[..whole.len() - 30], b"DIRC", b"", &[&whole[..], b"more"].concat()] {
        std::fs::write(&path, broken).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        let (_, frozen) = lab.freeze();
        assert_eq!(std::fs::read(newest(&frozen.parts[0], Path::new(".git/index"))).unwrap(), broken);
    }
}
