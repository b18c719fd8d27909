//! Other file systems in and around the workspace.

use std::io;
use std::path::Path;

use model::promotion::RefusalReason;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

use super::{Lab, Wish, assert_same, is_root, reality};

/// From here on this thread's mounts are its own. Only root can; whoever cannot has no such mounts to promote to.
fn own_mounts() -> bool {
    // SAFETY: only the mount namespace of this thread is left, and with it the shared working directory, which no test
    // changes.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    if !is_root() {
        assert_eq!(unshared, Err(Errno::PERM));
        return false;
    }
    unshared.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    true
}

fn mount_memory(at: &Path) {
    mount("zeno-test", at, "tmpfs", MountFlags::empty(), None).map_err(io::Error::from).unwrap();
}

const FILES: [(&str, &str); 4] =
    [("a", "alpha\n"), ("m/one", "one\n"), ("m/sub/two", "two\n"), ("n/x", "x\n")];

/// A workspace of which the folder `m` is on a file system of its own.
fn lab() -> Lab {
    let lab = Lab::new(&FILES);
    mount_memory(&lab.file("m"));
    let lower = lab.bed.lower();
    lab.outside(&format!("cp -a {0}/m/. m/; chmod --reference {0}/m m; touch -r {0}/m m", lower.display()));
    lab
}

#[test]
fn a_promotion_may_touch_several() {
    if !own_mounts() {
        return;
    }
    let lab = lab();
    let before = lab.tree();
    let seen = lab.inside("echo x > a; echo x > m/one; rm -r m/sub; mkdir m/new; echo x > m/new/x; rm n/x");
    let report = lab.promote(&Wish::default()).unwrap();
    // What was displaced there cannot leave its mount.
    assert!(lab.file("m/.zeno-prtest").is_dir());
    let mut now = lab.tree();
    now.retain(|path, _| !path.starts_with(b"m/.zeno-prtest"));
    assert_same(&now, &super::expected(&before, &seen, &report));
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
    assert!(!lab.file("m/.zeno-prtest").exists());
}

#[test]
fn the_workspace_may_be_one_itself() {
    if !own_mounts() {
        return;
    }
    let lab = Lab::new(&FILES);
    let lower = lab.bed.lower();
    mount_memory(&lab.real());
    lab.outside(&format!(
        "cp -a {0}/. .; chmod --reference {0} .; git init -q .; touch -r {0} .",
        lower.display()
    ));
    let before = lab.tree();
    lab.inside("echo x > a; rm -r m; echo x > new");
    lab.promote(&Wish::default()).unwrap();
    // Where git does not look, and no sandbox either.
    assert!(lab.file(".git/.zeno-prtest").is_dir());
    assert_eq!(lab.read("a"), "x\n");
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
}

#[test]
fn a_mount_itself_is_not_moved() {
    if !own_mounts() {
        return;
    }
    let lab = lab();
    // What it looks like can be changed all the same.
    lab.inside("chmod 700 m");
    assert!(lab.assess(&Wish::default()).is_clear());
    lab.inside("rm -r m");
    let before = reality(&lab.real());
    let report = lab.assess(&Wish::default());
    let reasons: Vec<_> = report.refused.iter().map(|refusal| refusal.reason).collect();
    assert_eq!(reasons, [RefusalReason::Mount]);
    lab.promote(&Wish::default()).unwrap_err();
    assert_same(&reality(&lab.real()), &before);
}
