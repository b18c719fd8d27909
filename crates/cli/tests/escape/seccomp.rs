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

/// Rules hang on the process and not on a program's name: copies, the dynamic linker, a new session or a program in
/// memory change nothing.
#[test]
fn the_filter_follows_every_way_to_start_a_program() {
    let memory = "import os; f = os.memfd_create('x'); os.write(f, open('/usr/bin/unshare', 'rb').read()); \
                  os.execve(f'/proc/self/fd/{f}', ['x', '-U', 'true'], {})";
    let ways = [
        "/usr/bin/unshare -U true",
        "cp /usr/bin/unshare /tmp/harmless && /tmp/harmless -U true",
        "/proc/self/root/usr/bin/unshare -U true",
        "$(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* | head -1) /usr/bin/unshare -U true",
        "setsid -w /usr/bin/unshare -U true",
        "env -i /usr/bin/unshare -U true",
        "/usr/bin/python3 -I -c 'import os; os.execv(\"/usr/bin/unshare\", [\"x\", \"-U\", \"true\"])'",
        &format!("/usr/bin/python3 -I -c \"{memory}\""),
    ];
    let home = shared();
    for way in ways {
        let said = home.run(&[], &["sh", "-c", way]);
        assert!(said.code == Some(1) && said.err.contains("not permitted"), "{way}: {said:?}");
        // The control: with namespaces allowed, every one of them works.
        let said = home.run(&["--nested"], &["sh", "-c", way]);
        assert_eq!(said.code, Some(0), "{way}: {said:?}");
    }
}
