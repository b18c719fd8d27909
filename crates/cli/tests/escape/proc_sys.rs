//! `/proc` and `/sys`: switches cannot be thrown, windows show nothing.

use crate::harness::{answer, is_root, outside, shared, through};

const SWITCHES: &str = include_str!("payloads/proc_sys.py");
const WINDOWS: &str = include_str!("payloads/windows.py");

#[test]
fn the_kernels_switches_cannot_be_opened() {
    let inside = shared().attack(&[], SWITCHES, &[]);
    assert!(inside.len() > 10);
    assert!(through(&inside).is_empty(), "{inside:#?}");
    if is_root() {
        let open = "attempt('open', lambda: os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)))";
        assert_eq!(outside(open, &[]), ["open: done"]);
        assert_eq!(shared().attack(&[], open, &[]), ["open: EACCES"]);
    }
}

#[test]
fn windows_on_the_kernel_are_empty() {
    let masked = [
        "/proc/kallsyms",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/interrupts",
        "/proc/acpi",
        "/proc/kcore",
        "/proc/scsi",
        "/proc/sched_debug",
        "/proc/latency_stats",
        "/sys/kernel/debug",
        "/sys/kernel/tracing",
        "/sys/kernel/security",
        "/sys/fs/bpf",
        "/sys/fs/pstore",
        "/sys/fs/cgroup",
        "/sys/firmware",
    ];
    let inside = shared().attack(&[], WINDOWS, &masked);
    let shown: Vec<_> = inside.iter().filter(|line| line.ends_with("done something")).collect();
    assert!(shown.is_empty(), "{shown:?}");
    let control = outside(WINDOWS, &["/proc/kallsyms", "/proc/interrupts"]);
    assert!(control.iter().all(|line| line.ends_with("done something")), "{control:?}");
}

#[test]
fn what_root_may_read_root_inside_may_not() {
    let closed =
        ["/proc/kmsg", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/kpagecount", "/proc/kpageflags"];
    let inside = shared().attack(&[], WINDOWS, &closed);
    assert!(closed.iter().all(|path| answer(&inside, path) == "EACCES"), "{inside:#?}");
    if is_root() {
        assert_eq!(answer(&outside(WINDOWS, &closed[1..3]), closed[1]), "done something");
    }
}

/// A mask made by mounting `/dev/null` from inside could be led elsewhere by a link (CVE-2025-31133).
#[test]
fn masks_are_the_real_null_device() {
    let said = shared().run(&[], &["stat", "-c", "%F %t:%T", "/proc/kallsyms", "/proc/keys", "/dev/null"]);
    assert_eq!(said.out, "character special file 1:3\n".repeat(3));
}
