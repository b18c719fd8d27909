//! On the real kernel, as root and as an ordinary user; a second opinion comes from outside the code under test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use model::doctor::Finding;

use super::{DiskImages, Machine, Overlay, Refusal, Rights, StateDir, Userns, probe, report};

#[test]
fn this_machine_as_whoever_runs_the_tests() {
    let home = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let machine = probe(home.path());
    // Milliseconds on a quiet machine; the bound only catches something that waits.
    println!("took {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(4));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing stays behind");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(machine.kernel.release, release.trim());
    assert!(machine.mount_api && machine.seccomp && machine.boot_clock.is_some());
    check_report(&machine, home.path());
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
}

#[test]
fn this_machine_as_an_ordinary_user() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let path = home.path().to_path_buf();
    // Only root can become someone else; everybody else is one already, perhaps with cgroups of their own.
    let own = Rights::probe();
    let (machine, expected) = match own {
        Rights::Root => (as_someone(move || probe(&path)), Rights::User { uid: SOMEONE, gid: SOMEONE }),
        Rights::User { .. } => (probe(&path), own),
    };
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing stays behind");
    assert_eq!(machine.rights, expected);
    assert!(!machine.idmap.state_dir && !machine.idmap.root);
    assert_eq!(machine.disk_images, DiskImages::NotRoot);
    check_report(&machine, home.path());
    let checks = report(&machine, home.path()).checks;
    assert!(
        checks.iter().all(|check| !check.name.starts_with("idmapped")),
        "no concern of theirs: {checks:?}"
    );
    if own == Rights::Root {
        let memory = checks.iter().find(|check| check.name == "cgroup-memory").unwrap();
        assert_eq!(memory.verdict, Finding::Less);
    }
}

#[test]
fn a_state_directory_that_cannot_be_made_is_reported() {
    let machine = probe(Path::new("/proc/zeno"));
    assert_eq!(machine.state_dir, StateDir::Unusable { errno: libc::ENOENT });
    let report = report(&machine, Path::new("/proc/zeno"));
    assert!(!report.usable);
    let state = report.checks.iter().find(|check| check.name == "state-directory").unwrap();
    assert!(state.remedy.contains("ZENO_HOME"));
}

#[track_caller]
fn check_report(machine: &Machine, home: &Path) {
    let report = report(machine, home);
    println!("{machine:#?}\n{report:#?}");
    match &machine.userns {
        Userns::Allowed => {
            assert_eq!(machine.overlay, Overlay::Works);
            assert_eq!(machine.data_only_stubs, machine.kernel.is_at_least(6, 16));
            assert!(report.usable);
        }
        // A machine that refuses has a setting that says so, and doctor names it.
        Userns::Refused { by, .. } => assert_ne!(*by, Refusal::Unknown),
    }
    for check in &report.checks {
        assert_eq!(check.verdict == Finding::Good, check.cost.is_empty(), "{check:?}");
    }
}

/// Credentials belong to a thread, so only this one loses its own.
fn as_someone<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        // SAFETY: plain numbers; the raw call changes this thread only, which ends after `work`.
        let groups = unsafe { libc::syscall(libc::SYS_setresgid, SOMEONE, SOMEONE, SOMEONE) };
        // SAFETY: as above.
        let users = unsafe { libc::syscall(libc::SYS_setresuid, SOMEONE, SOMEONE, SOMEONE) };
        assert_eq!((groups, users), (0, 0));
        work()
    });
    thread.join().unwrap()
}

/// Not nobody, to whom the cgroup tests delegate while this one looks.
const SOMEONE: u32 = 65533;
