//! Machines on which no sandbox can be made: the reason, what to do, the exit code; and nothing is left of the attempt.

use std::fs;
use std::path::Path;

use crate::home::{Home, Ran, is_root};
use crate::wait::until;

/// Executes its arguments where the kernel seems to have no overlayfs: `fsopen`, with which zeno mounts overlays and
/// nothing else that every sandbox needs, knows no such file system.
const WITHOUT_OVERLAY: &str = r#"
import ctypes, os, struct, sys
FSOPEN, NO_SUCH_DEVICE, ALLOW = 430, 0x00050000 | 19, 0x7FFF0000
lines = [(0x20, 0, 0, 0), (0x15, 0, 1, FSOPEN), (0x06, 0, 0, NO_SUCH_DEVICE), (0x06, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
rules = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
words = [ctypes.c_ulong(word) for word in (NO_NEW_PRIVS, 1, 0, 0, 0, SECCOMP, FILTER, ctypes.addressof(rules), 0, 0)]
prctl = ctypes.CDLL(None).prctl
if prctl(*words[:5]) or prctl(*words[5:]):
    sys.exit("no filter")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_kernel_without_overlay() {
    let home = Home::new();
    let started = home.zeno_by(&["python3", "-I", "-c", WITHOUT_OVERLAY], &["daemon", "start"]);
    assert_eq!(started.code, 0, "{started}");
    let before = home.all_traces();
    for (arguments, code) in [
        (&["create", "--no-workspace", "--name", "box"][..], 4),
        (&["run", "--no-workspace", "--", "true"], 125),
    ] {
        let ran = home.zeno(arguments);
        assert_eq!((ran.code, ran.out().as_str()), (code, ""), "{ran}");
        assert!(
            ran.err().starts_with("error: could not make the sandbox\n  because: could not overlay `/"),
            "{ran}"
        );
        assert!(ran.err().contains(": No such device"), "{ran}");
        assert!(
            ran.err().contains("try: overlay (") && ran.err().contains("`sudo modprobe overlay`"),
            "{ran}"
        );
        assert!(ran.err().contains("zeno doctor"), "{ran}");
        assert_eq!(home.all_traces(), before, "{ran}");
    }
    let doctor = home.zeno(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    assert!(doctor.out().contains("missing  overlay"), "{doctor}");
    // The control: without the filter the same home makes sandboxes.
    home.ok(&["daemon", "stop"]);
    home.create("box", &[]);
}

#[test]
fn a_home_on_an_overlay() {
    let home = Home::new();
    let [lower, upper, work, store] = ["lower", "upper", "work", "store"].map(|name| home.yard().join(name));
    for folder in [&lower, &upper, &work, &store] {
        fs::create_dir(folder).unwrap();
    }
    let mount = format!(
        "mount -t overlay zeno-real -o lowerdir={},upperdir={},workdir={}{} {}",
        lower.display(),
        upper.display(),
        work.display(),
        if is_root() { "" } else { ",userxattr" },
        store.display(),
    );
    let ran = apart(
        &home,
        &store,
        &mount,
        "
        said create --no-workspace --name box
        said run --no-workspace -- true
        said doctor",
    );
    assert_eq!((ran.code, ran.err().as_str()), (0, ""), "{ran}");
    let said = ran.out();
    let said: Vec<&str> = said.split_inclusive(']').collect();
    // Root's daemon maps owners where it keeps its state, so it does not even start; an ordinary user's does.
    let create = if is_root() { "[exit 7]" } else { "[exit 4]" };
    for (text, exit) in [(said[0], create), (said[1], "[exit 125]")] {
        assert!(
            text.contains("store on overlay): set ZENO_HOME to a directory on ext4, xfs or btrfs"),
            "{ran}"
        );
        assert!(text.contains("Invalid argument") && text.contains("zeno doctor"), "{ran}");
        assert!(text.ends_with(exit), "{ran}");
    }
    assert!(said[2].contains("missing  state-directory") && said[2].ends_with("[exit 1]"), "{ran}");
    until("nothing to run any more", || home.processes().is_empty().then_some(()));
}

/// Root's case, in which the daemon sees a small disk of the machine's, is among the bad inputs.
#[test]
fn a_home_without_room() {
    let home = Home::new();
    let store = home.yard().join("store");
    fs::create_dir(&store).unwrap();
    let mount = format!("mount -t tmpfs -o size=2m,mode=700 zeno-small {}", store.display());
    let ran = apart(
        &home,
        &store,
        &mount,
        "
        $zeno create --no-workspace --name box > /dev/null
        $zeno exec box -- dd if=/dev/zero of=/tmp/zeno-real-big bs=64k 2>&1 | grep -o 'No space left on device'
        find $ZENO_HOME/sandboxes -maxdepth 1 | sort > before
        n=0
        while test $n -lt 9 && $zeno create --no-workspace --name more$n > out 2>&1; do n=$((n + 1)); done
        cat out
        for made in $(seq 0 $((n - 1))); do $zeno destroy more$made > /dev/null; done
        find $ZENO_HOME/sandboxes -maxdepth 1 | sort > after
        cmp before after || diff before after
        $zeno destroy box > /dev/null",
    );
    let said = ran.out();
    assert!(said.starts_with("No space left on device\n"), "{ran}");
    // Whether the store or the sandbox's own files run out first is chance.
    assert!(said.contains("try: make room on the disk that holds "), "{ran}");
    assert!(!said.contains("differ"), "{ran}");
    until("nothing to run any more", || home.processes().is_empty().then_some(()));
}

/// Runs a script of calls where a home has been mounted, with `said` for each: what it says, its code, and that nothing is
/// left of it.
fn apart(home: &Home, store: &Path, mount: &str, script: &str) -> Ran {
    let inside = format!(
        "
        zeno=$1; export ZENO_HOME={store}
        look() {{ grep -F $ZENO_HOME /proc/self/mountinfo | cut -d ' ' -f 4-; find $ZENO_HOME | sort; }}
        said() {{
            $zeno \"$@\" 2>&1; echo \"[exit $?]\"
            look > after; cmp before after || {{ diff before after; exit 1; }}
        }}
        $zeno daemon start > started 2>&1; look > before
        {script}
        $zeno daemon stop > /dev/null",
        store = store.display(),
    );
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // A user namespace is needed to mount. In another one below it an ordinary user is that user again, without any rights.
    let again = format!("unshare --user --map-user={uid} --map-group={gid} sh");
    let (flags, shell) = if is_root() { ("-m", "sh") } else { ("-Urm", again.as_str()) };
    let outer = format!("{mount} && exec {shell} -c \"$0\" sh \"$@\"");
    home.zeno_by(&["unshare", flags, "sh", "-ec", &outer, &inside], &[])
}
