//! Files that are not just files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{FileType, Mode, XattrFlags};

use super::super::files::{DIRECTORY, join};
use super::super::{FROZEN_ROOT, Live};
use super::tree::{assert_current, merged, reality};
use super::{Lab, git, live_here};

#[test]
fn every_name_and_kind_is_kept() {
    let mut lab = Lab::new();
    for name in [&b"new\nline"[..], b"\xff\xfe not utf-8", b" ", b"-rf", b"a\\b", b"*"] {
        lab.write(Path::new("names").join(OsStr::from_bytes(name)), name);
    }
    symlink("loop", lab.path("loop")).unwrap();
    symlink("..", lab.path("names/up")).unwrap();
    symlink(OsStr::from_bytes(b"\xff/nowhere"), lab.path("dangling")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, lab.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0)
        .unwrap();
    lab.write("attributes", "");
    rustix::fs::setxattr(lab.path("attributes"), "user.colour", b"red", XattrFlags::empty()).unwrap();
    rustix::fs::setxattr(lab.path("names"), "user.colour", b"blue", XattrFlags::empty()).unwrap();
    lab.write("locked/file", "read only");
    std::fs::set_permissions(lab.path("locked/file"), PermissionsExt::from_mode(0o4555)).unwrap();
    std::fs::set_permissions(lab.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());

    std::fs::set_permissions(lab.path("locked"), PermissionsExt::from_mode(0o755)).unwrap();
    lab.write("locked/second", "");
    std::fs::set_permissions(lab.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
    rustix::fs::removexattr(lab.path("names"), "user.colour").unwrap();
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    std::fs::set_permissions(lab.path("locked"), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn sockets_and_the_unreadable_are_said_to_be_missing() {
    let mut lab = Lab::new();
    let _listener = UnixListener::bind(lab.path("socket")).unwrap();
    lab.write("file", "");
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        lab.write("closed/file", "");
        lab.write("secret", "");
        std::fs::set_permissions(lab.path("closed"), PermissionsExt::from_mode(0o000)).unwrap();
        std::fs::set_permissions(lab.path("secret"), PermissionsExt::from_mode(0o000)).unwrap();
    }
    let (_, frozen) = lab.freeze();
    let about: BTreeSet<_> = frozen.caveats.iter().filter_map(|caveat| caveat.path.clone()).collect();
    let mut expected = vec![lab.work(), lab.path("socket")];
    if !is_root {
        expected.extend([lab.path("closed"), lab.path("secret")]);
        std::fs::set_permissions(lab.path("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    }
    assert_eq!(about, expected.into_iter().map(|path| path.display().to_string()).collect());
    let paths: Vec<_> = merged(&frozen).into_keys().collect();
    assert_eq!(paths, [Vec::new(), b"file".to_vec()]);
    if !is_root {
        let (_, frozen) = lab.freeze();
        assert!(merged(&frozen).contains_key(&b"closed/file"[..]), "it can be read now");
    }
}

#[test]
fn holes_stay_holes() {
    let mut lab = Lab::new();
    let file = std::fs::File::create(lab.path("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"in the middle", 32 << 20).unwrap();
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    let copy = frozen.parts[0].layers[0].join(FROZEN_ROOT).join("sparse");
    assert!(copy.metadata().unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn the_names_of_one_file_stay_together() {
    let mut lab = Lab::new();
    lab.write("a/one", "first");
    std::fs::create_dir(lab.path("b")).unwrap();
    std::fs::hard_link(lab.path("a/one"), lab.path("b/two")).unwrap();
    let inodes = |frozen: &super::Frozen, paths: [&str; 2]| {
        let root = frozen.parts[0].layers[0].join(FROZEN_ROOT);
        paths.map(|path| root.join(path).metadata().unwrap().ino())
    };
    let (_, frozen) = lab.freeze();
    let [one, two] = inodes(&frozen, ["a/one", "b/two"]);
    assert_eq!(one, two);

    // Written under one name, it changes under the other as well, where no event tells of it.
    lab.write("a/one", "second");
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    let [one, two] = inodes(&frozen, ["a/one", "b/two"]);
    assert_eq!(one, two);

    // A file that gets its second name later.
    lab.write("a/alone", "first");
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    std::fs::hard_link(lab.path("a/alone"), lab.path("b/company")).unwrap();
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    lab.write("b/company", "second");
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
}

#[test]
fn depth_has_no_end() {
    let mut lab = Lab::new();
    let mut dir = rustix::fs::open(lab.work(), DIRECTORY, Mode::empty()).unwrap();
    let mut path = Vec::new();
    for level in 0..1200 {
        let name = format!("level-{level}");
        rustix::fs::mkdirat(&dir, &*name, Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, &*name, DIRECTORY, Mode::empty()).unwrap();
        path = join(&path, name.as_bytes());
    }
    let write = |text: &str| {
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::TRUNC;
        let file = rustix::fs::openat(&dir, c"bottom", flags, Mode::RUSR | Mode::WUSR).unwrap();
        std::fs::File::from(file).write_all(text.as_bytes()).unwrap();
    };
    write("first");
    let (_, first) = lab.freeze();
    assert_current(&first, &lab.work());
    write("second");
    let (_, second) = lab.freeze();
    let bottom = join(&path, b"bottom");
    assert_eq!(merged(&first)[&bottom].text, b"first");
    assert_current(&second, &lab.work());
    assert_eq!(reality(&lab.work())[&bottom].text, b"second");
    // The standard library's removal is recursive; ours is not.
    super::super::files::remove_tree(
        rustix::fs::open(lab.work(), DIRECTORY, Mode::empty()).unwrap(),
        b"level-0",
    )
    .unwrap();
    let (_, third) = lab.freeze();
    assert_current(&third, &lab.work());
}

#[test]
fn how_far_behind() {
    let mut lab = Lab::new();
    for number in 0..10 {
        lab.write(format!("folder/{number}"), "first");
    }
    let (_, frozen) = lab.freeze();
    assert_eq!(lab.captures.behind(&frozen, 5).unwrap(), (Vec::new(), 0));
    lab.write("folder/3", "second");
    lab.write("folder/new", "");
    std::fs::remove_file(lab.path("folder/4")).unwrap();
    let (paths, total) = lab.captures.behind(&frozen, 2).unwrap();
    assert_eq!((paths, total), (vec!["folder/3".into(), "folder/4".into()], 3));
}

/// Logs and build folders change all the time, and are nobody's work.
#[test]
fn what_git_ignores_is_never_behind() {
    for live in [live_here(), Live::Copy] {
        let mut lab = Lab::showing(live);
        git(&lab.work(), &["init", "-q"]);
        lab.write(".gitignore", "*.log\n/target/\n");
        for file in ["server.log", "target/deep/file", "folder/old.log", "kept.log", "source"] {
            lab.write(file, "first");
        }
        git(&lab.work(), &["add", "-f", "kept.log"]);
        let (_, frozen) = lab.freeze();
        lab.write("server.log", "first, second");
        lab.write("target/deep/file", "other");
        lab.write("target/new/deep", "");
        lab.write("folder/new.log", "");
        std::fs::remove_file(lab.path("folder/old.log")).unwrap();
        std::fs::remove_dir_all(lab.path("target/deep")).unwrap();
        assert_eq!(lab.captures.behind(&frozen, 9).unwrap(), (Vec::new(), 0), "{live:?}");
        // What is tracked is somebody's work, whatever the rules say.
        lab.write("kept.log", "second");
        lab.write("source", "second");
        let paths = vec!["kept.log".into(), "source".into()];
        assert_eq!(lab.captures.behind(&frozen, 9).unwrap(), (paths, 2), "{live:?}");
    }
}

#[test]
fn a_workspace_that_is_replaced_is_seen() {
    let mut lab = Lab::new();
    lab.write("old", "");
    lab.freeze();
    std::fs::rename(lab.work(), lab.outside("aside")).unwrap();
    std::fs::create_dir(lab.work()).unwrap();
    lab.write("new", "");
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
    std::fs::remove_dir_all(lab.work()).unwrap();
    lab.captures.sweep(&[]).unwrap();
    assert_eq!(std::fs::read_dir(lab.outside("store")).unwrap().count(), 0, "its capture goes with it");
}
