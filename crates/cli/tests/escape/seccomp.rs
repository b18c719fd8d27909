//! The system call filter: kernel interfaces, and the doors beside the usual one.

use crate::harness::{answer, is_root, outside, shared, through};

const CALLS: &str = include_str!("payloads/calls.py");

#[test]
fn kernel_interfaces_are_closed() {
    let home = shared();
    let inside = home.attack(&[], CALLS, &[]);
    assert_eq!(inside.len(), 20);
    let refused = |line: &String| line.ends_with(": EPERM") || line.ends_with(": ENOSYS");
    assert!(inside.iter().all(refused), "{inside:#?}");
    // A sandbox in which namespaces may be nested has no more of them.
    assert_eq!(home.attack(&["--nested"], CALLS, &[]), inside);

    let control = outside(CALLS, &[]);
    let mut works = vec!["add_key", "keyctl", "quotactl"];
    if is_root() {
        works.extend(["bpf", "syslog", "open_by_handle_at"]);
    }
    for call in works {
        assert_eq!(answer(&control, call), "done", "{control:#?}");
    }
    // Past the filter, the kernel looks at the arguments.
    assert_eq!(answer(&control, "clock_settime"), "EINVAL");
    assert!(through(&control).len() >= 3);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn other_ways_into_the_kernel_are_closed() {
    const ABI: &str = include_str!("payloads/abi.py");
    let inside = shared().attack(&[], ABI, &[]);
    let expected =
        ["x32 getpid: ENOSYS", "x32 unshare: ENOSYS", "x32 io_uring_setup: ENOSYS", "int 0x80: ENOSYS"];
    assert_eq!(inside, expected);

    // A kernel without 32-bit calls ends the process instead.
    let control = outside(ABI, &[]);
    assert!(["done a pid", "done SIGSEGV"].contains(&answer(&control, "int 0x80")), "{control:#?}");
}
