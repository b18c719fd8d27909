//! Both sides changed something, or somebody changes it while it is being promoted.

use std::path::PathBuf;

use jiff::Timestamp;
use model::promotion::{OnConflict, Resolutions};

use super::super::{PromoteError, Step, apply, undo};
use super::{Lab, Wish, actions, assert_same, assessed, conflicts};

const FILES: [(&str, &str); 5] = [
    ("a", "one\ntwo\nthree\nfour\nfive\n"),
    ("b", "beta\n"),
    ("d/one", "one\n"),
    ("d/two", "two\n"),
    ("d/sub/deep", "deep\n"),
];

#[track_caller]
fn check(inside: &str, outside: &str, expected: &[&str]) {
    let lab = Lab::new(&FILES);
    lab.inside(inside);
    lab.outside(outside);
    let before = lab.tree();
    assert_eq!(conflicts(&lab.assess(&Wish::default())), expected, "{inside} x {outside}");
    if !expected.is_empty() {
        assert!(matches!(lab.promote(&Wish::default()), Err(PromoteError::NotClear)));
        assert_same(&lab.tree(), &before);
    }
}

#[test]
fn what_is_told_of_them() {
    check("sed -i 1s/one/1/ a", "sed -i 1s/one/uno/ a", &["a: SameLines, Edit and Edit"]);
    check("printf '\\0' > a", "echo x >> a", &["a: SameLines, Edit and Edit"]);
    check("chmod 600 a", "chmod 640 a", &["a: SameAttributes, Attributes and Attributes"]);
    check("echo x > new", "echo y > new", &["new: BothCreated, Create and Create"]);
    check("rm a", "echo x >> a", &["a: ChangedAndGone, Delete and Edit"]);
    check("echo x >> a", "rm a", &["a: ChangedAndGone, Edit and Delete"]);
    check("rm -r d", "echo x > d/new", &["d/new: FolderHoldsMore, Delete and Create"]);
    check("rm -r d", "echo x > d/one", &["d/one: ChangedAndGone, Delete and Edit"]);
    check("echo x > d/new", "rm -r d", &["d/new: FolderGone, Create and Nothing"]);
    check("echo x > d/one", "rm -r d; ln -s /tmp d", &["d/one: FolderReplaced, Edit and Delete"]);
    check("rm a; mkdir a", "rm a; ln -s b a", &["a: ChangedAndGone, ChangeType and ChangeType"]);
}

#[test]
fn what_is_the_same_on_both_sides_is_none() {
    check("echo x > new", "echo x > new", &[]);
    check("rm -r d", "rm -r d", &[]);
    check("rm d/one", "rm -r d", &[]);
    check("chmod 600 a; echo x > a", "echo x > a; chmod 600 a", &[]);
    check("mkdir n; echo x > n/x", "mkdir n; echo y > n/y", &[]);
    check("touch a", "touch a b d", &[]);
    check("mv d x", "touch d/one", &[]);
}

#[test]
fn each_path_can_be_decided_by_itself() {
    let lab = Lab::new(&FILES);
    lab.inside("echo ours > a; echo ours > b; rm -r d");
    lab.outside("echo theirs > a; echo theirs > b; echo theirs > d/one; echo more > d/more");
    let paths = [("a", OnConflict::Ours), ("b", OnConflict::Theirs), ("d", OnConflict::Theirs)];
    let paths = paths.map(|(path, decision)| (path.to_owned(), decision)).into();
    let resolutions = Resolutions { otherwise: OnConflict::Abort, paths };
    let report = lab.promote(&Wish { resolutions, ..Wish::default() }).unwrap();
    // What nobody touched in the folder goes, the folder itself stays for the rest.
    assert_eq!(
        actions(&report),
        ["- d/sub", "- d/sub/deep", "- d/two", "~ a", "! b", "! d", "! d/more", "! d/one"]
    );
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("d/one")], ["ours\n", "theirs\n", "theirs\n"]);
    assert_eq!((lab.file("d/two").exists(), lab.file("d/more").exists()), (false, true));
}

#[test]
fn what_was_read_live_and_has_changed_since() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > new");
    lab.outside("echo y > new");
    let since = Timestamp::now();
    // Whoever created it, it was not there for the sandbox.
    assert_eq!(conflicts(&lab.assess(&Wish { since, ..Wish::default() })).len(), 1);
}

/// Assesses, lets something happen, and applies.
#[track_caller]
fn meanwhile(inside: &str, outside: &str) -> (Lab, Vec<PathBuf>) {
    let lab = Lab::new(&FILES);
    lab.inside(inside);
    let comparison = lab.comparison();
    let wish = Wish::default();
    let assessed = assessed(&comparison, &wish).unwrap();
    lab.outside(outside);
    let before = lab.tree();
    match apply(&assessed, &lab.folder(), &mut |_| {}) {
        Err(PromoteError::MovedOn { paths }) => {
            assert_same(&lab.tree(), &before);
            lab.assert_tidy();
            (lab, paths)
        }
        other => panic!("{inside} x {outside}: {other:?}"),
    }
}

#[test]
fn what_changes_after_the_assessment_stops_everything() {
    let at = |lab: &Lab, path: &str| vec![lab.file(path)];
    for (inside, outside, path) in [
        ("echo x > a; echo x > b", "echo y >> b", "b"),
        ("echo x > a; echo x > b", "cp b c; mv c b", "b"),
        ("echo x > a; rm b", "chmod 600 b", "b"),
        ("echo x > a; rm -r d", "echo new > d/sub/new", "d/sub"),
        ("echo x > a; rm -r d", "rm d/two", "d"),
        ("echo x > a; echo x > new", "echo y > new", "new"),
        ("echo x > a; chmod 700 d", "chmod 750 d", "d"),
    ] {
        let (lab, paths) = meanwhile(inside, outside);
        assert!(paths.contains(&at(&lab, path)[0]), "{inside} x {outside}: {paths:?}");
    }
}

#[test]
fn a_link_put_in_the_way_is_not_followed() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; echo evil > d/one; echo evil > d/sub/new");
    let comparison = lab.comparison();
    let wish = Wish::default();
    let assessed = assessed(&comparison, &wish).unwrap();
    let elsewhere = lab.bed.path("elsewhere");
    lab.outside(&format!("cp -a d {0}; rm -r d; ln -s {0} d", elsewhere.display()));
    let (before, safe) = (lab.tree(), crate::capture::tests::tree::reality(&elsewhere));
    let error = apply(&assessed, &lab.folder(), &mut |_| {}).unwrap_err();
    assert!(!matches!(error, PromoteError::TakeBack { .. }), "{error}");
    assert_same(&lab.tree(), &before);
    assert_same(&crate::capture::tests::tree::reality(&elsewhere), &safe);
    lab.assert_tidy();
}

#[test]
fn a_link_put_in_the_way_at_any_step_is_not_followed() {
    for at in 0.. {
        let lab = Lab::new(&FILES);
        lab.inside("echo evil > d/one; echo evil > d/sub/new; rm d/sub/deep; chmod 700 d/sub");
        let comparison = lab.comparison();
        let wish = Wish::default();
        let assessed = assessed(&comparison, &wish).unwrap();
        let elsewhere = lab.bed.path("elsewhere");
        lab.outside(&format!("cp -a d {}", elsewhere.display()));
        let safe = crate::capture::tests::tree::reality(&elsewhere);
        let mut step = 0;
        let mut was_in_the_way = false;
        let done = apply(&assessed, &lab.folder(), &mut |_| {
            if step == at {
                was_in_the_way = true;
                lab.outside(&format!("mv d {0}.away; ln -s {0} d", elsewhere.display()));
            }
            step += 1;
        });
        assert_same(&crate::capture::tests::tree::reality(&elsewhere), &safe);
        if !was_in_the_way {
            done.unwrap();
            break;
        }
    }
}

#[test]
fn what_was_touched_since_is_not_undone() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; mkdir n; echo x > n/x; rm b; chmod 700 d");
    lab.promote(&Wish::default()).unwrap();
    for (outside, path) in
        [("echo y >> a", "a"), ("echo y > n/y", "n/y"), ("echo b > b", "b"), ("chmod 750 d", "d")]
    {
        lab.outside(outside);
        let before = lab.tree();
        match lab.undo() {
            Err(PromoteError::MovedOn { paths }) => {
                assert!(paths.contains(&lab.file(path)), "{outside}: {paths:?}");
            }
            other => panic!("{outside}: {other:?}"),
        }
        assert_same(&lab.tree(), &before);
    }
    let leave = ["a", "n", "b", "d"].map(|path| lab.file(path));
    undo(&lab.folder(), &leave, &mut |_| {}).unwrap();
    assert_eq!([lab.read("a"), lab.read("b")], ["x\ny\n", "b\n"]);
}

#[test]
fn what_was_saved_again_without_a_change_is_undone() {
    let lab = Lab::new(&FILES);
    let before = lab.tree();
    lab.inside("echo x > a; chmod 755 a; mkdir n; echo x > n/x; rm b");
    lab.promote(&Wish::default()).unwrap();
    lab.outside("for file in a n/x; do cp -p $file draft; touch draft; mv draft $file; done");
    lab.undo().unwrap();
    let mut after = lab.tree();
    // Something moved in this folder: its time is of then.
    after.get_mut(b"".as_slice()).unwrap().mtime = before[b"".as_slice()].mtime;
    assert_same(&after, &before);
}

#[test]
fn some_can_be_left_when_undoing() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; echo x > b; rm -r d");
    lab.promote(&Wish::default()).unwrap();
    lab.outside("echo y >> a");
    undo(&lab.folder(), &[lab.file("a")], &mut |_| {}).unwrap();
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("d/one")], ["x\ny\n", "beta\n", "one\n"]);
    // A second time there is nothing to undo.
    assert!(matches!(lab.undo(), Err(PromoteError::NotApplied)));
}

#[test]
fn somebody_who_writes_while_it_is_taken_back_loses_nothing() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; echo x > b");
    let comparison = lab.comparison();
    let wish = Wish::default();
    let assessed = assessed(&comparison, &wish).unwrap();
    let done = apply(&assessed, &lab.folder(), &mut |step| match step {
        // The second cannot be moved, so the first is taken back; meanwhile somebody saves it.
        Step::Moving(path) if path == lab.file("b") => {
            lab.outside("echo y >> b; echo mine > draft; mv draft a");
        }
        _ => {}
    });
    let Err(PromoteError::Left { left }) = done else { panic!("{done:?}") };
    assert_eq!(left.len(), 1);
    assert_eq!([lab.read("a"), lab.read("b")], ["mine\n", "beta\ny\n"]);
    assert_eq!(std::fs::read_to_string(left[0].kept.as_os_str()).unwrap(), FILES[0].1);
}

#[test]
fn one_promotion_after_another() {
    let lab = Lab::new(&FILES);
    let before = lab.tree();
    lab.inside("echo x > a; mkdir n; echo x > n/x");
    lab.promote(&Wish::default()).unwrap();
    let first = lab.tree();
    lab.inside("echo z > b; rm -r n");
    let comparison = lab.comparison();
    let wish = Wish::default();
    // Of what was promoted before, nothing is to be done; `n` was never there for the sandbox, and nobody takes it away.
    let second = assessed(&comparison, &wish).unwrap();
    assert_eq!(actions(&second.report), ["= a", "~ b"]);
    let folder = lab.bed.path("promotions/prsecond");
    apply(&second, &folder, &mut |_| {}).unwrap();
    undo(&folder, &[], &mut |_| {}).unwrap();
    assert_same(&lab.tree(), &first);
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
}
