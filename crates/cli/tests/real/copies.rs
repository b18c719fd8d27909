//! An ordinary user on a kernel before 6.16, whose overlays cannot show ignored folders in place: they are copied.

use std::fs;
use std::path::Path;

use crate::home::{Home, is_root};
use crate::yard::git;

/// Executes its arguments where the kernel seems to have no data-only layers for ordinary users: `fsmount` without any
/// attribute, with which zeno probes them and mounts nothing else, is refused.
const WITHOUT_STUBS: &str = r#"
import ctypes, os, struct, sys
FSMOUNT, INVALID, ALLOW, THIRD = 432, 0x00050000 | 22, 0x7FFF0000, 32
lines = [(0x20, 0, 0, 0), (0x15, 0, 3, FSMOUNT), (0x20, 0, 0, THIRD), (0x15, 0, 1, 0), (0x06, 0, 0, INVALID), (0x06, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
rules = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
words = [ctypes.c_ulong(word) for word in (NO_NEW_PRIVS, 1, 0, 0, 0, SECCOMP, FILTER, ctypes.addressof(rules), 0, 0)]
prctl = ctypes.CDLL(None).prctl
if prctl(*words[:5]) or prctl(*words[5:]):
    sys.exit("no filter")
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// Root's overlays show them in place on every kernel that zeno runs on.
#[test]
fn ignored_folders_are_copied_where_they_cannot_be_shown_in_place() {
    if is_root() {
        return;
    }
    let home = Home::new();
    let work = home.yard().join("work");
    for (name, text) in [
        ("README", "readme"),
        ("target/debug/out", "old"),
        ("target/debug/.env", "SENTINEL"),
        (".env", "SENTINEL"),
        (".gitignore", "target\n.env\n"),
    ] {
        fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
        fs::write(work.join(name), text).unwrap();
    }
    git(&work, &["init", "-q"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "-qm", "first"]);
    let real = || fs::read_to_string(work.join("target/debug/out")).unwrap();

    // The control first: here they are read in place, so what is written there shows at once.
    home.create_in("live", &work);
    fs::write(work.join("target/debug/out"), "new").unwrap();
    assert_eq!(read(&home, "live", &work), "new");
    home.ok(&["destroy", "live"]);
    home.ok(&["daemon", "stop"]);

    let started = home.zeno_by(&["python3", "-I", "-c", WITHOUT_STUBS], &["daemon", "start"]);
    assert_eq!(started.code, 0, "{started}");
    home.create_in("box", &work);
    fs::write(work.join("target/debug/out"), "newer").unwrap();
    assert_eq!(read(&home, "box", &work), "new", "it is frozen with the rest");
    let changed = home.exec(
        "box",
        &format!(
            "cd {} && grep -rs SENTINEL . ; mv target x && test -f x/debug/out && rm -rf x && git status --short && \
             git clean -fdx && ls -A",
            work.display()
        ),
    );
    assert_eq!((changed.code, changed.out()), (0, ".git\n.gitignore\nREADME\n".to_owned()), "{changed}");
    assert_eq!(real(), "newer");
    // The next one has what is there now, and one that is made for a single command, too.
    home.create_in("next", &work);
    assert_eq!(read(&home, "next", &work), "newer");
    fs::write(work.join("target/debug/out"), "newest").unwrap();
    let folder = work.to_str().unwrap();
    assert_eq!(
        home.ok(&["run", "--workspace", folder, "-w", folder, "--", "cat", "target/debug/out"]),
        "newest"
    );
    home.ok(&["daemon", "stop"]);
}

fn read(home: &Home, name: &str, work: &Path) -> String {
    home.ok(&["exec", name, "--", "cat", work.join("target/debug/out").to_str().unwrap()])
}
