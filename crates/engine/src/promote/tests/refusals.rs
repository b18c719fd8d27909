//! What is never promoted, and what is only promoted with leave.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use model::promotion::{Refusal, RefusalReason};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::super::{PromoteError, Purpose};
use super::{Lab, Wish, actions, assert_same, is_root};

const FILES: [(&str, &str); 3] = [("a", "alpha\n"), ("d/one", "one\n"), ("d/two", "two\n")];

/// Something is refused, and nothing else is promoted either.
#[track_caller]
fn check(inside: &str, expected: &[(&str, RefusalReason)]) {
    let lab = Lab::new(&FILES);
    lab.inside(inside);
    refused(&lab, &Wish::default(), expected);
}

#[track_caller]
fn refused(lab: &Lab, wish: &Wish, expected: &[(&str, RefusalReason)]) {
    let before = lab.tree();
    let report = lab.assess(wish);
    let found: Vec<_> =
        report.refused.iter().map(|refusal| (refusal.path.display().into_owned(), refusal.reason)).collect();
    let expected: Vec<_> = expected.iter().map(|(path, reason)| ((*path).to_owned(), *reason)).collect();
    assert_eq!(found, expected);
    assert!(matches!(lab.promote(wish), Err(PromoteError::NotClear)));
    assert_same(&lab.tree(), &before);
    lab.assert_tidy();
}

#[test]
fn bits_that_give_rights() {
    check("echo x > a; cp /bin/true new; chmod 4755 new", &[("new", RefusalReason::SetId)]);
    check("chmod 2755 a", &[("a", RefusalReason::SetId)]);
    check("mkdir n; echo x > n/x; chmod 6755 n/x", &[("n/x", RefusalReason::SetId)]);
}

#[test]
fn a_folder_that_hands_on_its_group_is_no_danger() {
    let lab = Lab::new(&FILES);
    lab.inside("mkdir n; chmod 2755 n");
    lab.promote(&Wish::default()).unwrap();
    assert_eq!(lab.tree()[b"n".as_slice()].mode & 0o7777, 0o2755);
}

#[test]
fn pipes_and_sockets() {
    check("mkfifo pipe; echo x > a", &[("pipe", RefusalReason::Endpoint)]);
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a");
    let _socket = UnixListener::bind(lab.bed.path("upper/0/.zeno-frozen/socket")).unwrap();
    refused(&lab, &Wish::default(), &[("socket", RefusalReason::Endpoint)]);
    // Whoever names the rest gets the rest.
    let wish = Wish { paths: vec![lab.file("a")], ..Wish::default() };
    assert_eq!(actions(&lab.promote(&wish).unwrap()), ["~ a"]);
}

#[test]
fn devices_and_capabilities() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; echo x > b");
    let upper = lab.bed.path("upper/0/.zeno-frozen");
    let folder = std::fs::File::open(&upper).unwrap();
    let (kind, mode) = (rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::RUSR);
    let device = rustix::fs::mknodat(folder, "null", kind, mode, rustix::fs::makedev(1, 3));
    // Version 2, permitted and effective: CAP_NET_RAW.
    let capability = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let file = std::fs::File::open(upper.join("b")).unwrap();
    let given = rustix::fs::fsetxattr(file, c"security.capability", &capability, XattrFlags::empty());
    if !is_root() {
        assert_eq!(
            (device, given),
            (Err(Errno::PERM), Err(Errno::PERM)),
            "an ordinary user has none to give"
        );
        return;
    }
    assert_eq!((device, given), (Ok(()), Ok(())));
    refused(&lab, &Wish::default(), &[("b", RefusalReason::Capability), ("null", RefusalReason::Device)]);
}

#[test]
fn a_folder_that_this_user_may_not_write_to() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > new");
    // Somebody else's folder stands in for the workspace.
    let comparison = lab.bed.compare_at(Path::new("/usr"));
    let wish = Wish::default();
    let report = super::assessed(&comparison, &wish).unwrap().report;
    let refused = |refusal: &Refusal| refusal.reason == RefusalReason::NotWritable;
    assert_eq!(report.refused.iter().any(refused), !is_root(), "{report:?}");
}

#[test]
fn masked_paths_and_git_s_own_are_left_out() {
    let lab = Lab::new(&FILES);
    lab.inside("echo secret > .env; echo x > a; mkdir keys; echo k > keys/k; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit");
    let wish = Wish { masked: vec![lab.file(".env"), lab.file("keys")], ..Wish::default() };
    let report = lab.promote(&wish).unwrap();
    assert_eq!(actions(&report), ["~ a"]);
    assert_eq!((report.left_out.masked.len(), report.left_out.git.len()), (3, 1));
    assert!(!lab.file(".env").exists() && !lab.file(".git").exists());
}

#[test]
fn git_s_own_is_left_out_wherever_it_is_and_however_it_is_spelt() {
    let lab = Lab::new(&FILES);
    lab.inside(
        "mkdir -p sub/.git/hooks .GIT; echo x > sub/.git/hooks/pre-commit; echo x > .GIT/config; \
         echo 'gitdir: ../elsewhere' > d/.git; echo x > sub/file; echo x > .github",
    );
    // Naming it changes nothing.
    let named = vec![lab.file(""), lab.file(".GIT/config"), lab.file("sub/.git/hooks/pre-commit")];
    for paths in [vec![], named] {
        let report = lab.assess(&Wish { paths, ..Wish::default() });
        assert_eq!(actions(&report), ["+ .github", "+ sub", "+ sub/file"]);
        let left: Vec<_> = report.left_out.git.iter().map(|path| path.display().into_owned()).collect();
        let expected = [".GIT", "d/.git", "sub/.git"].map(|path| lab.file(path).display().to_string());
        assert_eq!((left.as_slice(), report.left_out.unnamed), (&expected[..], 0));
    }
    lab.promote(&Wish::default()).unwrap();
    assert!([".GIT", "d/.git", "sub/.git"].iter().all(|path| !lab.file(path).exists()));
}

#[test]
fn git_s_own_is_left_out_where_the_repository_has_another_name_for_it() {
    let lab = Lab::new(&FILES);
    lab.inside(
        "mkdir -p .bare/hooks; echo x > .bare/hooks/pre-commit; echo x > .bare/config; echo x > .bared",
    );
    lab.outside("git init -q --separate-git-dir=.bare .");
    let report = lab.promote(&Wish::default()).unwrap();
    assert_eq!(actions(&report), ["+ .bared"]);
    assert!(!report.left_out.git.is_empty());
    assert!(!lab.file(".bare/hooks/pre-commit").exists() && lab.read(".bare/config").contains("[core]"));
}

#[test]
fn a_worktree_that_lies_in_a_git_folder_is_promoted() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a");
    lab.outside("mkdir ../.git; cp -a . ../.git/tree");
    let comparison = lab.bed.compare_at(&lab.bed.path(".git/tree"));
    let report = super::assessed(&comparison, &Wish::default()).unwrap().report;
    assert_eq!((actions(&report), report.left_out.git.len()), (vec!["~ a".to_owned()], 0));
}

/// A sandbox that is brought up to date keeps what it never promotes.
#[test]
fn what_only_looks_like_git_s_own_goes_along_with_the_sandbox() {
    let lab = Lab::new(&FILES);
    lab.inside("mkdir .GIT; echo x > .GIT/config; echo x > a");
    let comparison = lab.comparison();
    let wish = Wish::default();
    let told = |purpose| {
        let assessed = super::assessed_for(&comparison, &wish, purpose).unwrap();
        assert_eq!(actions(&assessed.report), ["~ a"]);
        let paths = assessed.work.intents.iter().map(|intent| intent.spot.path.display().into_owned());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(told(Purpose::Refresh), [".GIT", "a"]);
    assert_eq!([told(Purpose::Preview), told(Purpose::Apply)], [["a"], ["a"]]);
}

#[test]
fn what_executes_by_itself_needs_leave() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > .envrc; mkdir .vscode; echo '{}' > .vscode/tasks.json; ln -s d .husky; echo x > package.json");
    let before = lab.tree();
    assert_eq!(executes(&lab, &Wish::default()), [".envrc", ".husky", ".vscode/tasks.json"]);
    assert!(matches!(lab.promote(&Wish::default()), Err(PromoteError::NotClear)));
    assert_same(&lab.tree(), &before);
    lab.promote(&Wish { allow_executes: true, ..Wish::default() }).unwrap();
    assert_eq!(lab.read(".envrc"), "x\n");
}

#[test]
fn shell_start_up_files_count_where_the_home_is() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > .bashrc");
    // Anybody's, not only the caller's.
    let homes = [PathBuf::from("/home/other"), lab.real()].into();
    assert_eq!(lab.assess(&Wish { homes, ..Wish::default() }).executes.len(), 1);
    assert_eq!(lab.assess(&Wish::default()).executes.len(), 0);
}

#[test]
fn what_git_would_take_for_a_repository_needs_leave_whatever_it_is_called() {
    let check = |inside: &str, expected: &[&str]| {
        let lab = Lab::new(&FILES);
        lab.inside(&format!("mkdir x; echo t > x/text; {inside}"));
        assert_eq!(executes(&lab, &Wish::default()), expected, "{inside}");
        assert!(executes(&lab, &Wish { allow_executes: true, ..Wish::default() }).is_empty());
    };
    check("echo r > x/HEAD; echo c > x/config; mkdir x/hooks; echo h > x/hooks/post-checkout", &[]);
    let whole = ["x/HEAD", "x/config", "x/objects", "x/refs", "x/text"];
    check("echo r > x/HEAD; echo c > x/config; mkdir x/objects x/refs", &whole);
    // Some file systems take these for the same.
    let whole = ["x/Objects", "x/config", "x/head", "x/refs", "x/text"];
    check("echo r > x/head; echo c > x/config; mkdir x/Objects; ln -s d x/refs", &whole);
    // A work tree's part of one, and what such a part may leave to another folder.
    check("echo r > x/HEAD; echo ../y > x/commondir", &["x/HEAD", "x/commondir", "x/text"]);
    check(
        "echo c > x/config; mkdir x/objects x/refs x/hooks; echo h > x/hooks/a",
        &["x/config", "x/hooks/a"],
    );
    check("echo r > x/HEAD; mkdir x/objects x/refs; rm x/HEAD", &[]);
}

#[test]
fn a_folder_that_becomes_a_repository_by_what_is_here_already_needs_leave() {
    let files = [("x/HEAD", "r\n"), ("x/objects/a", "o\n"), ("x/config", "c\n")];
    let lab = Lab::new(&files);
    lab.inside("mkdir x/refs");
    assert_eq!(executes(&lab, &Wish::default()), ["x/refs"]);
    let lab = Lab::new(&files);
    lab.inside("mkdir x/refs; rm x/HEAD");
    assert_eq!(executes(&lab, &Wish::default()), [""; 0]);
}

fn executes(lab: &Lab, wish: &Wish) -> Vec<String> {
    lab.assess(wish).executes.iter().map(|executes| executes.path.display().into_owned()).collect()
}

/// With these settings of the real repository, what is done inside would execute.
#[track_caller]
fn check_settings(settings: &str, inside: &str, expected: &[&str]) {
    let lab = Lab::new(&FILES);
    lab.inside(&format!("echo x > other; {inside}"));
    lab.outside(&format!("git init -q .; {settings}"));
    assert_eq!(executes(&lab, &Wish::default()), expected, "{settings}");
    assert!(executes(&lab, &Wish { allow_executes: true, ..Wish::default() }).is_empty());
}

#[test]
fn hooks_count_wherever_the_repository_has_them() {
    let hooks =
        "mkdir -p d/hooks/deep; echo x > d/hooks/pre-commit; echo x > d/hooks/deep/tool; echo x > d/new";
    check_settings("true", hooks, &[]);
    let found = ["d/hooks/deep/tool", "d/hooks/pre-commit"];
    check_settings("git config core.hooksPath d/hooks", hooks, &found);
    check_settings("git config core.hooksPath ./d/../d/hooks/", hooks, &found);
    check_settings("git config core.hooksPath \"$PWD/d/hooks\"", hooks, &found);
    check_settings("ln -s d way; git config core.hooksPath way/hooks", hooks, &found);
    check_settings("git config core.hooksPath new/hooks", "ln -s d new", &["new"]);
    check_settings("git config core.hooksPath ''", hooks, &[]);
    // Hooks beside everything else: what lies deeper is none.
    check_settings(
        "git config core.hooksPath .",
        "echo x > pre-commit; echo x > d/one",
        &["other", "pre-commit"],
    );
}

#[test]
fn settings_that_are_included_count() {
    let inside = "echo x > settings; echo x > d/settings";
    check_settings("git config include.path ../settings", inside, &["settings"]);
    check_settings("git config includeIf.onbranch:x.path ../d/settings", inside, &["d/settings"]);
}

#[test]
fn hooks_of_the_user_and_of_a_repository_around_count() {
    let lab = Lab::new(&FILES);
    lab.inside("mkdir own; echo x > own/post-checkout; echo x > d/pre-push");
    lab.outside("git config -f .gitconfig core.hooksPath '~/own'");
    let wish = Wish { home: Some(lab.real()), ..Wish::default() };
    assert_eq!(executes(&lab, &wish), ["own/post-checkout"]);
    lab.outside("git init -q d; git -C d config core.hooksPath .");
    assert_eq!(executes(&lab, &wish), ["d/pre-push", "own/post-checkout"]);
}

#[test]
fn settings_that_git_cannot_read_are_no_reason_to_let_everything_through() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a");
    lab.outside("git init -q .; echo '[core' > .git/config");
    let comparison = lab.comparison();
    assert!(matches!(super::assessed(&comparison, &Wish::default()), Err(PromoteError::Called(_))));
    lab.promote(&Wish { allow_executes: true, ..Wish::default() }).unwrap();
}
