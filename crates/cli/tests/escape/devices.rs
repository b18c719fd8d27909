//! Device nodes: six harmless ones, and no way to more.

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::io::Errno;

use crate::harness::{answer, is_root, lines, outside, shared, through};

const DEVICES: &str = include_str!("payloads/devices.py");

#[test]
fn there_are_few_devices_and_no_others_can_be_made() {
    let home = shared();
    let inside = home.attack(&[], DEVICES, &[]);
    assert_eq!(
        answer(&inside, "dev"),
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    );
    // A whiteout is no device; where it means something, on the layers, it cannot be made.
    assert_eq!(through(&inside), ["make a whiteout in /dev/shm"], "{inside:#?}");
    // The control: what is given works.
    let given =
        home.run(&[], &["sh", "-c", "echo x > /dev/null && head -c 3 /dev/zero | wc -c && ls /dev/pts"]);
    assert_eq!(lines(&given.out), ["3", "ptmx"], "{given:?}");
}

#[test]
fn a_device_node_of_the_host_cannot_be_opened() {
    let home = shared();
    let node = home.seen().join("node");
    let made = mknodat(CWD, &node, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3));
    if !is_root() {
        assert_eq!(made, Err(Errno::PERM), "an ordinary user leaves none where a sandbox could find it");
        return;
    }
    made.unwrap();
    let node = node.to_str().unwrap();
    assert_eq!(answer(&home.attack(&[], DEVICES, &[node]), "open a node of the host"), "EACCES");
    let open = "attempt('open', lambda: os.close(os.open(sys.argv[1], os.O_RDONLY)))";
    assert_eq!(outside(open, &[node]), ["open: done"]);
}
