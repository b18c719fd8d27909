//! Files of the host: seen, but never changed, and not reached by any other name.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::FlockOperation;

use crate::capabilities::find;
use crate::harness::{Home, is_root, lines, outside, said_with, shared, through};

const SPOIL: &str = include_str!("payloads/spoil.py");
const SWAP: &str = include_str!("payloads/swap.py");
const ATTRIBUTES: &str = include_str!("payloads/attributes.py");

/// All that a change could show in.
fn state(folder: &Path) -> Vec<(String, Vec<u8>, u32, i64, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let stat = entry.metadata().unwrap();
        // A link that leads nowhere has none.
        let bytes = fs::read(entry.path()).unwrap_or_default();
        let name = entry.file_name().into_string().unwrap();
        found.push((name, bytes, stat.mode(), stat.mtime_nsec(), stat.nlink()));
    }
    found.sort();
    found
}

#[test]
fn no_write_reaches_the_host() {
    let home = shared();
    let folder = tempfile::tempdir_in(home.seen()).unwrap();
    let file = folder.path().join("precious");
    fs::write(&file, "the host's own").unwrap();
    let before = state(folder.path());
    let path = file.to_str().unwrap();
    let inside = home.attack(&[], SPOIL, &[path]);
    // The control: inside, all of it happens.
    assert_eq!(through(&inside).len(), 10, "{inside:#?}");
    assert_eq!(state(folder.path()), before);
    // And outside it would have shown.
    outside(SPOIL, &[path]);
    assert_ne!(state(folder.path()), before);
}

#[test]
fn system_files_stay_as_they_are() {
    let home = shared();
    let before = fs::read("/etc/passwd").unwrap();
    let try_it =
        "echo evil::0:0::/:/bin/sh >> /etc/passwd; grep -c ^evil /etc/passwd; touch /usr/bin/evil-escape";
    let said = home.run(&[], &["sh", "-c", try_it]);
    // Root inside may; an ordinary user may no more than outside.
    assert_eq!(said.out, if is_root() { "1\n" } else { "0\n" }, "{said:?}");
    assert_eq!(fs::read("/etc/passwd").unwrap(), before);
    assert!(!Path::new("/usr/bin/evil-escape").exists());
}

/// bubblewrap's first case: what the user may not read outside, they may not read inside.
#[test]
fn permissions_hold_inside() {
    let home = shared();
    let read = |options: &[&str]| home.run(options, &["cat", "/etc/shadow"]).code;
    if is_root() {
        assert_eq!((read(&[]), read(&["-u", "nobody"])), (Some(0), Some(1)));
    } else {
        assert_eq!(read(&[]), Some(1));
    }
    assert_eq!(home.run(&[], &["ls", "/oldroot", "/newroot", "/.old", "/old_root/etc"]).code, Some(2));
}

#[test]
fn the_store_is_not_there_by_any_name() {
    let home = shared();
    home.is_well();
    let store = home.store().to_str().unwrap();
    let name = home.store().file_name().unwrap().to_str().unwrap();
    let names = [
        store.to_owned(),
        format!("//{store}"),
        format!("/proc/self/root{store}"),
        format!("/proc/self/cwd{store}"),
        format!("/proc/thread-self/root{store}"),
        format!("/proc/1/root{store}"),
        format!("/var/tmp/../../var/tmp/{name}"),
    ];
    for name in &names {
        let said = home.run(&[], &["stat", name]);
        assert_eq!(said.code, Some(1), "{name}: {said:?}");
    }
    assert!(home.store().join("zeno.db").exists());
    // What is made in its place stays inside.
    let made = home.run(&[], &["sh", "-c", &format!("mkdir {store} && echo fake > {store}/token")]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_ne!(fs::read(home.store().join("token")).unwrap_or_default(), b"fake\n");
}

#[test]
fn sandboxes_do_not_see_each_other() {
    let home = shared();
    let (one, other) = (home.create(&[]), home.create(&[]));
    let write = "echo secret > /tmp/secret; echo secret > /dev/shm/secret; sleep 4243 & echo ok";
    assert_eq!(
        home.say(&["exec", &one, "--", "sh", "-c", &format!("({write}) >/dev/null; echo ok")]).out,
        "ok\n"
    );
    let look = "cat /tmp/secret /dev/shm/secret; grep -l '[4]243' /proc/[0-9]*/cmdline; true";
    let said = home.exec(&other, &["sh", "-c", look]);
    assert_eq!(said.out, "", "{said:?}");
    assert_eq!(home.exec(&one, &["cat", "/tmp/secret", "/dev/shm/secret"]).out, "secret\nsecret\n");
    let mounts = home.exec(&other, &["cat", "/proc/self/mountinfo"]).out;
    let identity = |name: &str| home.must(&["get", name, "--json"]);
    let id: serde_json::Value = serde_json::from_str(&identity(&one)).unwrap();
    assert!(!mounts.contains(id["id"].as_str().unwrap()), "{mounts}");
    home.must(&["destroy", &one, &other]);
}

#[test]
fn copying_finds_only_the_sandboxs_files() {
    let home = shared();
    let folder = tempfile::tempdir_in(home.seen()).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "outside").unwrap();
    let path = file.to_str().unwrap();
    let sandbox = home.create(&[]);
    let prepare = format!("printf inside > {path}; ln -s {path} /tmp/link; ln -s / /tmp/root");
    assert_eq!(home.exec(&sandbox, &["sh", "-c", &prepare]).code, Some(0));
    let names = [
        path.to_owned(),
        format!("/../../../../..{path}"),
        format!("/tmp/../../..{path}"),
        "/tmp/link".to_owned(),
        format!("/tmp/root{path}"),
        format!("/proc/self/root{path}"),
        format!("/proc/self/cwd{path}"),
    ];
    for name in &names {
        let read = home.say(&["cp", &format!("{sandbox}:{name}"), "-"]);
        assert_eq!((read.code, read.out.as_str()), (Some(0), "inside"), "{name}: {read:?}");
        let mut write = home.zeno(&["cp", "-", &format!("{sandbox}:{name}")]);
        let written = said_with(&mut write, b"inside");
        assert_eq!(written.code, Some(0), "{name}: {written:?}");
    }
    for name in ["root", "cwd"] {
        let read = home.say(&["cp", &format!("{sandbox}:/proc/1/{name}{path}"), "-"]);
        assert_ne!(read.code, Some(0), "{name}: {read:?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "outside");
    home.must(&["destroy", &sandbox]);
}

/// The process that copies for init must hold nothing of the host that a link could name.
#[test]
fn copying_gives_away_no_descriptor_of_inits() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let links = "for n in $(seq 3 24); do ln -s /proc/self/fd/$n /tmp/fd$n; done; echo logged";
    assert_eq!(home.exec(&sandbox, &["sh", "-c", links]).out, "logged\n");
    let log = find(&home.store().join("sandboxes"), "log").unwrap();
    let before = fs::read(&log).unwrap();
    assert!(before.ends_with(b"logged\n"));
    for number in 3..=24 {
        let place = format!("{sandbox}:/tmp/fd{number}");
        let read = home.say(&["cp", &place, "-"]);
        assert!(!read.out.contains("logged"), "descriptor {number} is the log: {read:?}");
        // Refused or not: what counts is the log.
        said_with(&mut home.zeno(&["cp", "-", &place]), b"forged");
    }
    assert_eq!(fs::read(&log).unwrap(), before);
    home.must(&["destroy", &sandbox]);
}

#[test]
fn what_is_copied_out_follows_no_link() {
    let home = shared();
    let folder = tempfile::tempdir_in(home.seen()).unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "mine").unwrap();
    fs::create_dir(at("rooms")).unwrap();
    let sandbox = home.create(&[]);
    let shell =
        |script: &str| assert_eq!(home.exec(&sandbox, &["sh", "-c", script]).code, Some(0), "{script}");
    let out = |to: &Path| home.say(&["cp", &format!("{sandbox}:/tmp/tree"), to.to_str().unwrap()]);

    // First links to what is precious, then files and folders of the same names: a second copy must not follow the first.
    shell(&format!(
        "mkdir /tmp/tree; ln -s {0} /tmp/tree/a; ln -s {1} /tmp/tree/b",
        at("precious").display(),
        at("rooms").display()
    ));
    assert_eq!(out(&at("copy")).code, Some(0));
    assert!(at("copy/a").is_symlink() && at("copy/b").is_symlink());
    shell("cd /tmp/tree && rm a b && echo evil > a && mkdir b && echo evil > b/evil");
    fs::rename(at("copy"), at("tree")).unwrap();
    out(folder.path());
    assert_eq!(fs::read_to_string(at("precious")).unwrap(), "mine");
    assert_eq!(fs::read_dir(at("rooms")).unwrap().count(), 0);

    shell("cp /usr/bin/id /tmp/who; chmod 6755 /tmp/who");
    home.must(&["cp", &format!("{sandbox}:/tmp/who"), at("who").to_str().unwrap()]);
    assert_eq!(fs::metadata(at("who")).unwrap().permissions().mode() & 0o7777, 0o755);
    home.must(&["destroy", &sandbox]);
}

#[test]
fn crafted_layers_are_not_believed() {
    let home = shared();
    let sandbox = home.create(&[]);
    let script = crate::harness::script(ATTRIBUTES);
    let said = home.exec(&sandbox, &["/usr/bin/python3", "-I", "-c", &script]);
    let said = lines(&said.out);
    assert!(
        said.iter().filter(|line| line.starts_with("trusted")).all(|line| line.ends_with("EPERM")),
        "{said:?}"
    );
    let crafted = find(&home.store().join("sandboxes"), "crafted").unwrap().join("deep");
    let list = "print(*sorted(os.listxattr(sys.argv[1], follow_symlinks=False)))";
    let names = outside(list, &[crafted.to_str().unwrap()]).join(" ");
    // For an ordinary user `user.overlay.` is overlayfs's own: the kernel writes what comes from inside under another name.
    let believed = if is_root() { "trusted.overlay.redirect" } else { "user.overlay.redirect" };
    assert!(!names.split(' ').any(|name| name == believed), "{names}");
    home.must(&["stop", &sandbox]);
    home.must(&["start", &sandbox]);
    let listed = home.exec(&sandbox, &["ls", "-A", "/tmp/crafted/deep"]);
    assert_eq!((listed.code, listed.out.as_str()), (Some(0), ""), "{listed:?}");
    home.must(&["destroy", &sandbox]);
}

/// CVE-2026-41579 and its kin: a mount point that was swapped for a link while nobody looked.
#[test]
fn a_swapped_mount_point_leads_nowhere() {
    let home = shared();
    let sandbox = home.create(&[]);
    let swapped = home.exec(&sandbox, &["/usr/bin/python3", "-I", "-c", &crate::harness::script(SWAP)]);
    assert!(through(&lines(&swapped.out)).is_empty(), "{swapped:?}");
    home.must(&["stop", &sandbox]);
    let before = fs::read_dir("/etc").unwrap().count();
    home.must(&["start", &sandbox]);
    let kinds =
        home.exec(&sandbox, &["stat", "-f", "-c", "%T", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm"]);
    assert_eq!(lines(&kinds.out), ["proc", "sysfs", "tmpfs", "devpts", "tmpfs"], "{kinds:?}");
    assert_eq!(fs::read_dir("/etc").unwrap().count(), before);
    home.must(&["destroy", &sandbox]);
}

#[test]
fn a_lock_inside_holds_nobody_outside() {
    let home = shared();
    let path = home.seen().join("lock");
    fs::write(&path, "").unwrap();
    let sandbox = home.create(&[]);
    let hold = format!("exec 9<{0}; flock 9; echo held > /tmp/held; sleep 60", path.display());
    home.must(&["exec", &sandbox, "-d", "--", "sh", "-c", &hold]);
    let held = || home.exec(&sandbox, &["test", "-e", "/tmp/held"]).code == Some(0);
    assert!(crate::harness::eventually(held));
    let ours = fs::File::open(&path).unwrap();
    rustix::fs::flock(&ours, FlockOperation::NonBlockingLockExclusive).unwrap();
    // The control: inside it is held.
    let try_it = format!("flock -n {} true", path.display());
    assert_eq!(home.exec(&sandbox, &["sh", "-c", &try_it]).code, Some(1));
    home.must(&["destroy", &sandbox]);
}

/// A link on the host's side of the view leads inside, where the same name means the sandbox's copy.
#[test]
fn links_of_the_host_are_followed_inside_only() {
    let home = shared();
    let folder = tempfile::tempdir_in(home.seen()).unwrap();
    fs::write(folder.path().join("target"), "outside").unwrap();
    symlink(folder.path().join("target"), folder.path().join("link")).unwrap();
    let link = folder.path().join("link");
    let said = home.run(&[], &["sh", "-c", &format!("echo evil > {0}; cat {0}", link.display())]);
    assert_eq!(said.out, "evil\n", "{said:?}");
    assert_eq!(fs::read_to_string(&link).unwrap(), "outside");
}
