//! Two changes of one text.

use std::process::Command;

use proptest::prelude::*;

use super::super::merge::merge;
use super::{Lab, Wish, actions};

#[track_caller]
fn check(before: &str, ours: &str, theirs: &str, merged: Option<&str>) {
    // One letter is one line.
    let lines = |text: &str| text.chars().map(|letter| format!("{letter}\n")).collect::<String>();
    let found = merge(lines(before).as_bytes(), lines(ours).as_bytes(), lines(theirs).as_bytes());
    let found = found.map(|text| String::from_utf8(text).unwrap());
    assert_eq!(found, merged.map(lines), "{before}: {ours} and {theirs}");
}

#[test]
fn lines() {
    check("abcde", "Abcde", "abcdE", Some("AbcdE"));
    check("abcde", "abcde", "bcde", Some("bcde"));
    check("abcde", "bcde", "abcd", Some("bcd"));
    check("abcde", "xabcde", "abcdey", Some("xabcdey"));
    check("abcde", "abXcde", "abcdYe", Some("abXcdYe"));
    check("abcde", "abXde", "abXde", Some("abXde"));
    check("abcde", "AbXde", "abXdE", Some("AbXdE"));
    check("abcde", "abXde", "abYde", None);
    check("abcde", "abXcde", "abYcde", None);
    // Changes that touch each other are one.
    check("abcde", "aBcde", "abCde", None);
    check("abcde", "ade", "abcXde", None);
    check("", "a", "b", None);
    check("", "a", "a", Some("a"));
    check("abc", "", "abc", Some(""));
    check("abc", "", "abX", None);
}

#[test]
fn ends_of_lines_and_zero_bytes() {
    assert_eq!(merge(b"a\nb\nc", b"A\nb\nc", b"a\nb\nc\n"), Some(b"A\nb\nc\n".to_vec()));
    assert_eq!(
        merge(b"a\r\nb\r\nc\r\n", b"A\r\nb\r\nc\r\n", b"a\r\nb\r\nC\r\n"),
        Some(b"A\r\nb\r\nC\r\n".to_vec())
    );
    assert_eq!(merge(b"a\nb\n\0\n", b"A\nb\n\0\n", b"a\nb\n\0\nc\n"), None);
}

/// Lines that are all different, some changed, some gone, some new.
fn edited(name: &'static str) -> impl Strategy<Value = String> {
    proptest::collection::vec(0..8_u8, 12).prop_map(move |fates| {
        let lines = fates.iter().enumerate().map(|(number, fate)| match fate {
            0 => format!("changed {number}\n"),
            1 => String::new(),
            2 => format!("line {number}\n{name} {number}\n"),
            3 => format!("both {number}\nline {number}\n"),
            _ => format!("line {number}\n"),
        });
        lines.collect()
    })
}

proptest! {
    #[test]
    fn as_git_does_it(ours in edited("ours"), theirs in edited("theirs")) {
        let dir = tempfile::tempdir().unwrap();
        let before: String = (0..12).map(|number| format!("line {number}\n")).collect();
        for (name, text) in [("before", &before), ("ours", &ours), ("theirs", &theirs)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let git = Command::new("git")
            .args(["merge-file", "-p", "ours", "before", "theirs"])
            .current_dir(&dir)
            .output()
            .unwrap();
        let merged = merge(before.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        let gits = git.status.success().then_some(git.stdout);
        prop_assert_eq!(merged, gits);
    }
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

#[test]
fn a_merged_file_has_both_changes_and_can_be_seen_before() {
    let lab = Lab::new(&[("a", TEXT)]);
    lab.inside("sed -i 1s/one/1/ a; chmod 755 a");
    lab.outside("sed -i 5s/five/5/ a");
    let comparison = lab.comparison();
    let wish = Wish::default();
    let assessed = super::assessed(&comparison, &wish).unwrap();
    let merged: Vec<_> = assessed.merged().collect();
    assert_eq!(merged, [(lab.file("a"), b"1\ntwo\nthree\nfour\n5\n".as_slice())]);
    assert!(assessed.report.has_merges());
    lab.promote(&wish).unwrap();
    assert_eq!(lab.read("a"), "1\ntwo\nthree\nfour\n5\n");
    assert_eq!(lab.tree()[b"a".as_slice()].mode & 0o777, 0o755);
    lab.undo().unwrap();
    assert_eq!(lab.read("a"), "one\ntwo\nthree\nfour\n5\n");
}

#[test]
fn a_sandbox_that_has_reality_s_change_already_is_taken_as_it_is() {
    let lab = Lab::new(&[("a", TEXT)]);
    lab.inside("sed -i '1s/one/1/; 5s/five/5/' a");
    lab.outside("sed -i 5s/five/5/ a");
    let report = lab.promote(&Wish::default()).unwrap();
    assert_eq!(actions(&report), ["~ a"]);
    assert_eq!(lab.read("a"), "1\ntwo\nthree\nfour\n5\n");
}
