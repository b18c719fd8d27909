//! Namespaces and mounts: making new ones, entering others, changing what is mounted, climbing out.

use crate::harness::{answer, is_root, lines, outside, shared, through};

const NAMESPACES: &str = include_str!("payloads/namespaces.py");
const MOUNTS: &str = include_str!("payloads/mounts.py");
const JOIN: &str = include_str!("payloads/join.py");
const CHROOT: &str = include_str!("payloads/chroot.py");
const SHARED_MEMORY: &str = include_str!("payloads/shared_memory.py");

#[test]
fn no_namespace_can_be_made() {
    let home = shared();
    let inside = home.attack(&[], NAMESPACES, &[]);
    assert_eq!(inside.len(), 11);
    assert!(through(&inside).is_empty(), "{inside:#?}");
    // libc falls back to `clone` on this answer only.
    assert_eq!(answer(&inside, "clone3 user"), "ENOSYS");

    assert_eq!(through(&outside(NAMESPACES, &[])).len(), 11);
    assert_eq!(through(&home.attack(&["--nested"], NAMESPACES, &[])).len(), 11);
}

#[test]
fn nothing_can_be_mounted() {
    let home = shared();
    let inside = home.attack(&[], MOUNTS, &["/mnt"]);
    assert!(through(&inside).is_empty(), "{inside:#?}");
    assert!(inside.iter().all(|line| line.ends_with(": EPERM")), "{inside:#?}");

    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let control = outside(MOUNTS, &[folder.path().to_str().unwrap(), "fresh"]);
    for works in ["tmpfs", "bind", "fsopen", "open_tree", "pivot_root"] {
        assert!(answer(&control, works).starts_with("done"), "{works}: {control:#?}");
    }
}

#[test]
fn with_nested_namespaces_the_masks_stay() {
    let home = shared();
    let inside = home.attack(&["--nested"], MOUNTS, &["/mnt", "fresh"]);
    // The control: mounting as such works there.
    assert_eq!((answer(&inside, "tmpfs"), answer(&inside, "bind")), ("done", "done"));
    let masks = [
        "procfs",
        "debugfs",
        "the disk",
        "cgroup v1",
        "cgroup v2",
        "sys writable",
        "dev writable",
        "uncover kallsyms",
        "uncover keys",
        "mount_setattr",
    ];
    let open: Vec<_> = masks.into_iter().filter(|mask| answer(&inside, mask).starts_with("done")).collect();
    assert!(open.is_empty(), "{open:?}: {inside:#?}");
}

#[test]
fn the_namespaces_of_init_cannot_be_entered() {
    let home = shared();
    let inside = home.attack(&[], JOIN, &["1"]);
    assert_eq!(through(&inside), ["pidfd_open"], "{inside:#?}");

    // Of a process of one's own they can at least be opened.
    let script = crate::harness::script(JOIN);
    let own = r#"sleep 60 & /usr/bin/python3 -I -c "$0" $!; kill $!"#;
    let control = lines(&home.run(&[], &["sh", "-c", own, &script]).out);
    assert_eq!(through(&control).len(), 8, "{control:#?}");
}

#[test]
fn climbing_ends_at_the_sandboxs_root() {
    let inside = shared().attack(&[], CHROOT, &[]);
    let climbed = if is_root() { "climbed to the sandbox's root" } else { "climbed to EPERM" };
    assert_eq!(inside, [climbed, "above the root: nothing", "mounts at the root: 1"]);
}

#[test]
fn shared_memory_of_the_host_is_not_there() {
    let key = std::process::id().to_string();
    let made = outside(SHARED_MEMORY, &["make", &key]);
    let inside = shared().attack(&[], SHARED_MEMORY, &["find", &key]);
    let control = outside(SHARED_MEMORY, &["find", &key]);
    let removed = outside(SHARED_MEMORY, &["remove", &key]);
    assert_eq!((made[0].as_str(), removed[0].as_str()), ("make: done", "remove: done"));
    assert_eq!((inside[0].as_str(), control[0].as_str()), ("find: ENOENT", "find: done"));
}
