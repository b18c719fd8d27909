//! Ignored folders where a kernel offers an ordinary user no way to read them in place (before 6.16): copies, and so frozen.
//!
//! The kernel is newer here, so the way is chosen by hand; the files, the overlays and git are real. Root never needs it, but
//! sees the same.

use model::caveat::CaveatKind;

use super::super::{Frozen, Live};
use super::tree::{assert_same, reality};
use super::view::{check, repository_in};
use super::{Lab, git};

fn copying() -> (Lab, Frozen) {
    let mut lab = repository_in(Lab::showing(Live::Copy));
    let (_, frozen) = lab.freeze();
    (lab, frozen)
}

#[test]
fn copied_folders_are_there_and_can_be_removed_moved_and_written_to() {
    let (lab, frozen) = copying();
    let before = reality(&lab.work());
    assert_eq!(frozen.parts[0].live, None, "nothing of the worktree itself is shown");
    check(&lab, &frozen, "cat web/node_modules/left/index.js small.log", "left\nignored but small");
    check(
        &lab,
        &frozen,
        "ls -A . web/node_modules",
        ".:\n.git\n.gitignore\nsmall.log\nsrc\ntarget\nweb\n\nweb/node_modules:\nleft\nright",
    );
    let again = "rm -rf web/node_modules && ls -A web && mkdir web/node_modules && ls -A web/node_modules";
    check(&lab, &frozen, again, "");
    let moved = "mv target elsewhere && cat elsewhere/debug/app && ls -A | grep -c target || true";
    check(&lab, &frozen, moved, "binary\n0");
    check(&lab, &frozen, "git clean -fdxq && ls -A", ".git\n.gitignore\nsrc");
    check(&lab, &frozen, "git status --short --ignored", "!! small.log\n!! target/\n!! web/");
    let more = "echo more >> web/node_modules/left/index.js && cat web/node_modules/left/index.js";
    check(&lab, &frozen, more, "left\nmore");
    assert_same(&before, &reality(&lab.work()));
}

#[test]
fn copied_folders_are_frozen_and_the_next_state_has_what_is_new() {
    let (mut lab, first) = copying();
    lab.write("web/node_modules/left/index.js", "in place\n");
    lab.write("target/debug/new", "new\n");
    std::fs::remove_file(lab.path("web/node_modules/right/index.js")).unwrap();
    std::fs::rename(lab.path("small.log"), lab.path("target/small.log")).unwrap();
    let old = "cat web/node_modules/*/index.js small.log && find target -type f";
    check(&lab, &first, old, "left\nright\nignored but small\ntarget/debug/app");
    let (_, second) = lab.freeze();
    let new = "cat web/node_modules/*/index.js && find . -path ./.git -prune -o -type f -print | sort";
    let shown = "in place\n./.gitignore\n./src/main.rs\n./target/debug/app\n./target/debug/new\n\
                 ./target/small.log\n./web/node_modules/left/index.js";
    check(&lab, &second, new, shown);
    check(&lab, &first, old, "left\nright\nignored but small\ntarget/debug/app");
    // A daemon that starts anew finds the same.
    lab.restart();
    let (_, third) = lab.freeze();
    check(&lab, &third, new, shown);
}

#[test]
fn large_files_are_copied_secrets_are_not_and_nothing_is_said_to_be_live() {
    let mut lab = repository_in(Lab::showing(Live::Copy));
    // More than what is copied of an ignored file where folders are read in place.
    for name in ["target/large", "large.log"] {
        std::fs::File::create(lab.path(name)).unwrap().set_len(65 << 20).unwrap();
    }
    lab.write("target/.env", "KEY=1\n");
    let (_, frozen) = lab.freeze();
    check(
        &lab,
        &frozen,
        "stat -c %s target/large large.log && ls -A target",
        "68157440\n68157440\ndebug\nlarge",
    );
    assert_eq!(frozen.masked.len(), 1, "{:?}", frozen.masked);
    let kinds: Vec<_> = frozen.caveats.iter().map(|caveat| caveat.kind).collect();
    assert!(!kinds.contains(&CaveatKind::Live), "{:?}", frozen.caveats);
    // The control: the same, read in place, is said to be live.
    lab.captures = super::open(&lab.outside("other"), super::live_here());
    let (_, frozen) = lab.freeze();
    assert!(frozen.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Live), "{:?}", frozen.caveats);
}

#[test]
fn a_linked_worktree_has_its_copies_too() {
    let mut lab = repository_in(Lab::showing(Live::Copy));
    let side = lab.outside("side");
    git(&lab.work(), &["worktree", "add", "-b", "side", side.to_str().unwrap()]);
    std::fs::create_dir(side.join("target")).unwrap();
    std::fs::write(side.join("target/app"), "side\n").unwrap();
    let holder = lab.holder();
    let frozen = lab.captures.freeze(&side, holder, &[], &|_| ()).unwrap();
    std::fs::write(side.join("target/app"), "changed\n").unwrap();
    check(
        &lab,
        &frozen,
        "cat target/app && git branch --show-current && rm -r target && git status --short",
        "side\nside",
    );
}
