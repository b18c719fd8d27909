//! Rights: what a command has, and that no file gives it more.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, Said, is_root, lines, outside, said, script, shared};

const CAPABILITY: &str = include_str!("payloads/capability.py");

/// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, SYS_PTRACE,
/// AUDIT_WRITE and SETFCAP, all over the sandbox's own namespaces only.
const ROOT: &str = "00000000a00c25fb";
const NONE: &str = "0000000000000000";

#[test]
fn a_command_has_few_rights_and_cannot_get_more() {
    let said = shared().run(&[], &["grep", "-E", "^(Cap|NoNewPrivs|Seccomp:)", "/proc/self/status"]);
    let have = if is_root() { ROOT } else { NONE };
    let status: Vec<(String, String)> = lines(&said.out)
        .iter()
        .filter_map(|line| line.split_once(":\t").map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let value = |name: &str| status.iter().find(|(key, _)| key == name).unwrap().1.as_str();
    let found = ["CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp"].map(value);
    assert_eq!(found, [NONE, have, have, NONE, "1", "2"]);
    // What a program could ever get: no more than it has, and for an ordinary user what init itself needs (KILL).
    let ever = if is_root() { ROOT } else { "0000000000000020" };
    assert_eq!(value("CapBnd"), ever);
}

#[test]
fn no_mount_honours_setuid_or_devices() {
    let said = shared().run(&[], &["cat", "/proc/self/mountinfo"]);
    let mut seen = 0;
    for line in lines(&said.out) {
        let fields: Vec<&str> = line.split(' ').collect();
        let (point, options) = (fields[4], fields[5]);
        // Single device nodes, bound one by one, have nothing below them.
        if line.contains(" - devtmpfs ") {
            continue;
        }
        assert!(options.contains("nosuid"), "{line}");
        assert!(
            options.contains("nodev") || point.starts_with("/dev") || point.starts_with("/proc/"),
            "{line}"
        );
        seen += 1;
    }
    assert!(seen >= 5, "{}", said.out);
}

#[test]
fn a_setuid_program_stays_who_called_it() {
    let home = Home::new();
    fs::set_permissions(home.store(), fs::Permissions::from_mode(0o755)).unwrap();
    let make = "cp /usr/bin/id /tmp/who && chmod 6755 /tmp/who && stat -c %a /tmp/who";
    let sandbox = home.create(&[]);
    assert_eq!(home.exec(&sandbox, &["sh", "-c", make]).out, "6755\n");
    let upper = find(&home.store().join("sandboxes"), "who").expect("the layer holds what was written");
    if is_root() {
        let called = home.say(&["exec", &sandbox, "-u", "nobody", "--", "/tmp/who", "-u"]);
        assert_eq!(called.out, "65534\n", "{called:?}");
        // On the host the file is root's, and has the bit: no other user may get to it, even in a home that was there
        // before and lies open.
        assert_ne!(said_as_nobody(&upper).code, Some(0));
        // The control: where others can get to it, it works.
        let open = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = open.path().join("who");
        fs::copy("/usr/bin/id", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o6755)).unwrap();
        assert_eq!(said_as_nobody(&copy).out, "0\n");
    } else {
        // Whatever is setuid on this machine runs with our own rights.
        let su = home.exec(&sandbox, &["sh", "-c", "echo | su -c id root"]);
        assert_ne!(su.code, Some(0), "{su:?}");
    }
    home.must(&["destroy", &sandbox]);
}

/// File capabilities are to programs what the setuid bit is: neither one of the host's, whether copied up or not, nor one
/// that was given inside makes anybody more than they are, in there or out here.
#[test]
fn a_file_capability_gives_nobody_anything() {
    let home = Home::new();
    for folder in [home.store(), home.seen()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hosts = home.seen().join("hosts");
    fs::copy("/usr/bin/grep", &hosts).unwrap();
    let given = outside(CAPABILITY, &[hosts.to_str().unwrap()]);
    let sandbox = home.create(&[]);
    let inside = |user: &[&str], program: &str| {
        let argv = [program, "-E", "^Cap(Prm|Eff|Amb):", "/proc/self/status"];
        let said = home.say(&[&["exec", &sandbox], user, &["--"], &argv].concat());
        said.out.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let give = |path: &str| {
        let said = home.exec(&sandbox, &["/usr/bin/python3", "-I", "-c", &script(CAPABILITY), path]);
        lines(&said.out)
    };
    assert_eq!(home.exec(&sandbox, &["cp", "/usr/bin/grep", "/tmp/grown"]).code, Some(0));
    if !is_root() {
        // Only root has any to give.
        assert_eq!(
            (given, give("/tmp/grown")),
            (vec!["give: EPERM".to_owned()], vec!["give: EPERM".to_owned()])
        );
        assert_eq!(inside(&[], "/tmp/grown"), [NONE; 3]);
        home.must(&["destroy", &sandbox]);
        return;
    }
    assert_eq!((given, give("/tmp/grown")), (vec!["give: done".to_owned()], vec!["give: done".to_owned()]));
    let hosts = hosts.to_str().unwrap();
    let check = |program: &str| {
        assert_eq!(inside(&["-u", "nobody"], program), [NONE; 3], "{program}");
        assert_eq!(inside(&[], program), [ROOT, ROOT, NONE], "{program}");
    };
    check(hosts);
    assert_eq!(home.exec(&sandbox, &["chmod", "a+rx", hosts, "/tmp/grown"]).code, Some(0));
    check(hosts);
    check("/tmp/grown");
    // Outside, nobody gets to what is kept of them; where they can, it works.
    let sandboxes = home.store().join("sandboxes");
    let kept =
        ["hosts", "grown"].map(|name| find(&sandboxes, name).expect("the layer holds what was written"));
    for path in kept.iter().chain([&sandboxes]) {
        assert_eq!(rights_of_nobody(path), "", "{path:?}");
    }
    assert_eq!(rights_of_nobody(Path::new(hosts)), "CapEff:\t0000000000200000\n");
    home.must(&["destroy", &sandbox]);
}

/// What another user has who executes this copy of `grep`; nothing, if they cannot.
fn rights_of_nobody(program: &Path) -> String {
    let mut command = Command::new("setpriv");
    let look = "\"$0\" ^CapEff: /proc/self/status";
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", look]).arg(program);
    said(&mut command).out
}

/// By way of a shell: setpriv itself still has all rights when it looks for the program.
fn said_as_nobody(program: &Path) -> Said {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "\"$0\" -u"]).arg(program);
    said(&mut command)
}

#[test]
fn whoever_runs_inside_is_nobody_more_outside() {
    let home = shared();
    let sandbox = home.create(&[]);
    let detached = home.must(&["exec", &sandbox, "-d", "--", "sleep", "4242"]);
    let process = home.processes().into_iter().find(|pid| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command == b"sleep\x004242\0")
    });
    let status = fs::read_to_string(format!("/proc/{}/status", process.expect(&detached))).unwrap();
    // Root inside is an id that nobody has; an ordinary user stays who they are.
    let own = rustix::process::geteuid().as_raw();
    let id = if is_root() { 1 << 31 } else { own };
    assert!(status.contains(&format!("Uid:\t{id}\t{id}\t{id}\t{id}\n")), "{status}");
    home.must(&["destroy", &sandbox]);
}

/// The first file of that name below.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok().into_iter().flatten().flatten() {
            if entry.file_name() == name {
                return Some(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    None
}
