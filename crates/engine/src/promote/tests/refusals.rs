//! What is never promoted, and what is only promoted with leave.

use std::os::unix::net::UnixListener;
use std::path::Path;

use model::promotion::{Refusal, RefusalReason};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::super::PromoteError;
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
fn what_executes_by_itself_needs_leave() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > .envrc; mkdir .vscode; echo '{}' > .vscode/tasks.json; ln -s d .husky; echo x > package.json");
    let before = lab.tree();
    let report = lab.assess(&Wish::default());
    let paths: Vec<_> = report.executes.iter().map(|executes| executes.path.display().into_owned()).collect();
    assert_eq!(paths, [".envrc", ".husky", ".vscode/tasks.json"]);
    assert!(matches!(lab.promote(&Wish::default()), Err(PromoteError::NotClear)));
    assert_same(&lab.tree(), &before);
    lab.promote(&Wish { allow_executes: true, ..Wish::default() }).unwrap();
    assert_eq!(lab.read(".envrc"), "x\n");
}

#[test]
fn shell_start_up_files_count_where_the_home_is() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > .bashrc");
    let home = Some(lab.real());
    assert_eq!(lab.assess(&Wish { home, ..Wish::default() }).executes.len(), 1);
    assert_eq!(lab.assess(&Wish::default()).executes.len(), 0);
}
