//! Every pair of the matrix, done on real files.

use std::path::Path;

use model::promotion::{Action, Deed, Ground, OnConflict, Outcome, outcome};

use super::{Lab, Wish, assert_same, conflicts, deciding, reality};

/// Who does it: the two never do exactly the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Sandbox,
    Reality,
}

/// The shell commands for a deed.
pub(super) fn script(ground: Ground, deed: Deed, who: Who) -> String {
    let (mine, line, mode) = match who {
        Who::Sandbox => ("s", "1s/.*/sandbox/", "700"),
        Who::Reality => ("r", "9s/.*/reality/", "750"),
    };
    let file = if ground == Ground::Folder { "it/file" } else { "it" };
    match deed {
        Deed::None => ":".to_owned(),
        Deed::Create if ground == Ground::Folder => format!("echo {mine} > it/{mine}"),
        Deed::Create => format!("echo {mine} > it"),
        Deed::Edit => format!("text=$(sed {line} {file}); echo \"$text\" > {file}"),
        Deed::Replace => format!("sed {line} {file} > draft; mv draft {file}"),
        Deed::Delete => "rm -r it".to_owned(),
        Deed::Chmod => format!("chmod {mode} it"),
        Deed::FileToFolder => format!("rm it; mkdir it; echo {mine} > it/{mine}"),
        Deed::FolderToFile => format!("rm -r it; echo {mine} > it"),
        Deed::Symlink => format!("rm -rf it; ln -s {mine} it"),
    }
}

fn lab(ground: Ground, sandbox: Deed, reality: Deed) -> Lab {
    let lab = match ground {
        Ground::Nothing => Lab::new(&[("other", "other\n")]),
        Ground::File => Lab::new(&[("it", TEXT)]),
        Ground::Folder => Lab::new(&[("it/file", TEXT)]),
    };
    lab.inside(&script(ground, sandbox, Who::Sandbox));
    lab.outside(&script(ground, reality, Who::Reality));
    lab
}

/// What promoting really does.
fn really(lab: &Lab, sandbox: Deed, reality: Deed) -> Outcome {
    let report = lab.assess(&Wish::default());
    let has = |action| report.actions.iter().any(|planned| planned.action == action);
    if !report.conflicts.is_empty() {
        Outcome::Conflict
    } else if has(Action::Merge) {
        Outcome::Merged
    } else if [Action::Create, Action::Modify, Action::Delete].into_iter().any(has) {
        Outcome::Taken
    } else if has(Action::Same) {
        Outcome::Same
    } else if sandbox == Deed::None && reality == Deed::None {
        Outcome::Nothing
    } else {
        Outcome::Kept
    }
}

fn pairs() -> impl Iterator<Item = (Ground, Deed, Deed, Outcome)> {
    let deeds = || Deed::ALL.into_iter();
    let pairs = deeds().flat_map(move |sandbox| deeds().map(move |reality| (sandbox, reality)));
    pairs.flat_map(|(sandbox, reality)| {
        let grounds = Ground::ALL.into_iter();
        grounds.filter_map(move |ground| Some((ground, sandbox, reality, outcome(ground, sandbox, reality)?)))
    })
}

#[test]
fn every_pair_ends_as_stated() {
    let mut wrong = Vec::new();
    for (ground, sandbox, reality, stated) in pairs() {
        let lab = lab(ground, sandbox, reality);
        let before = lab.tree();
        let really = really(&lab, sandbox, reality);
        if really != stated {
            let conflicts = conflicts(&lab.assess(&Wish::default()));
            wrong.push(format!(
                "{ground:?}: {sandbox:?} x {reality:?}: {really:?}, not {stated:?} {conflicts:?}"
            ));
            continue;
        }
        let done = lab.promote(&Wish::default());
        match stated {
            Outcome::Conflict => {
                done.unwrap_err();
                assert_same(&lab.tree(), &before);
            }
            Outcome::Nothing | Outcome::Kept | Outcome::Same => {
                done.unwrap();
                assert_same(&lab.tree(), &before);
            }
            Outcome::Taken | Outcome::Merged => {
                done.unwrap();
                assert_both(&lab, ground, sandbox, reality);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each side's change is there.
#[track_caller]
fn assert_both(lab: &Lab, ground: Ground, sandbox: Deed, reality: Deed) {
    for (deed, who) in [(sandbox, Who::Sandbox), (reality, Who::Reality)] {
        assert_done(&lab.real(), ground, deed, who);
    }
}

/// This deed can be seen.
#[track_caller]
pub(super) fn assert_done(root: &Path, ground: Ground, deed: Deed, who: Who) {
    let (name, word, line, mode) = match who {
        Who::Sandbox => ("s", "sandbox", 0, 0o700),
        Who::Reality => ("r", "reality", 8, 0o750),
    };
    let file = if ground == Ground::Folder { "it/file" } else { "it" };
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let tree = reality(root);
    match deed {
        Deed::None => {}
        Deed::Create | Deed::FileToFolder if ground == Ground::Folder || deed == Deed::FileToFolder => {
            assert_eq!(read(&format!("it/{name}")), format!("{name}\n"));
        }
        Deed::Create | Deed::FileToFolder | Deed::FolderToFile => assert_eq!(read("it"), format!("{name}\n")),
        Deed::Edit | Deed::Replace => assert_eq!(read(file).lines().nth(line), Some(word)),
        Deed::Delete => assert!(!tree.contains_key(b"it".as_slice())),
        Deed::Chmod => assert_eq!(tree[b"it".as_slice()].mode & 0o777, mode),
        Deed::Symlink => assert_eq!(tree[b"it".as_slice()].text, name.as_bytes()),
    }
}

#[test]
fn every_conflict_can_be_decided_and_undone() {
    for (ground, sandbox, reality, stated) in pairs() {
        if stated != Outcome::Conflict {
            continue;
        }
        let what = format!("{ground:?}: {sandbox:?} x {reality:?}");
        let theirs = lab(ground, sandbox, reality);
        theirs.promote(&deciding(OnConflict::Theirs)).unwrap();
        assert_both(&theirs, ground, Deed::None, reality);

        let ours = lab(ground, sandbox, reality);
        let before = ours.tree();
        let report = ours.assess(&Wish::default());
        let done = ours.promote(&deciding(OnConflict::Ours));
        if report.conflicts.iter().any(|conflict| !conflict.ours_possible) {
            done.unwrap_err();
            assert_same(&ours.tree(), &before);
            continue;
        }
        done.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_both(&ours, ground, sandbox, Deed::None);
        ours.undo().unwrap();
        assert_same(&ours.tree(), &before);
    }
}

pub(super) const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
