//! Terminals: a command types into nobody else's (CVE-2017-5226).

use crate::harness::{answer, outside, shared};

const TERMINAL: &str = include_str!("payloads/terminal.py");

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    let home = shared();
    let inside = home.attack(&[], TERMINAL, &[]);
    let expected = [
        "TIOCSTI: EPERM",
        "TIOCSTI with high bits: EPERM",
        "TIOCLINUX: EPERM",
        "descriptors that are terminals: 0",
        "leads its session: True",
        "/dev/tty: ENXIO",
    ];
    assert_eq!(inside, expected);

    // Kernels can forbid it by themselves; where they do not, the attempt works.
    let legacy = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if legacy.is_ok_and(|legacy| legacy.trim() == "1") {
        let control = outside(TERMINAL, &[]);
        assert_eq!(
            (answer(&control, "TIOCSTI"), answer(&control, "TIOCSTI with high bits")),
            ("done", "done")
        );
    }
}

#[test]
fn a_terminal_inside_is_the_sandboxs_own() {
    let inside: Vec<String> =
        shared().attack(&["-t"], TERMINAL, &[]).iter().map(|line| line.trim_end().to_owned()).collect();
    let expected = [
        "TIOCSTI: EPERM",
        "TIOCSTI with high bits: EPERM",
        "TIOCLINUX: EPERM",
        "TIOCSTI on standard input: EPERM",
        "terminal: /dev/pts/0",
        "descriptors that are terminals: 3",
        "leads its session: True",
        "/dev/tty: done",
    ];
    assert_eq!(inside, expected);
}
