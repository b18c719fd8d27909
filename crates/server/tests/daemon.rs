//! The daemon's main up to the point where a control plane is needed. One test, because a process logs to one
//! place only.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use server::daemon::{AnyError, DaemonError, DaemonOptions, ListenError, Served, main};

#[test]
fn a_daemon_that_cannot_be_built_says_why_and_lets_go_of_its_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let options = |listen: Option<&str>| DaemonOptions {
        home: home.clone(),
        listen: listen.map(|address| address.parse().unwrap()),
        resolver: None,
        trust: None,
        allow_promote: false,
        log: None,
    };
    let no_launcher = |_: &std::path::Path| Err::<(), AnyError>("no launcher".into());
    let never = async |(), _| unreachable!("not prepared");

    let open_to_all = main(&options(Some("0.0.0.0:0")), no_launcher, never);
    assert!(matches!(open_to_all, Err(DaemonError::Listen(ListenError::NotLoopback { .. }))));
    assert!(!home.exists(), "refused before anything was done");

    let unprepared = main(&options(None), no_launcher, never);
    assert!(matches!(unprepared, Err(DaemonError::Prepare(_))));
    assert!(!home.join("daemon.lock").exists(), "a forked launcher would hold the lock");

    let broken_store = async |(), home: std::path::PathBuf| {
        assert!(home.join("daemon.lock").exists());
        Err::<Served, AnyError>("the store is broken".into())
    };
    let unbuilt = main(&options(None), |_| Ok(()), broken_store);
    assert!(matches!(unbuilt, Err(DaemonError::Build(_))), "{unbuilt:?}");
    let log = fs::read_to_string(home.join("daemon.log")).unwrap();
    assert!(log.contains("the store is broken"), "{log}");
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(home.join("daemon.log")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!home.join("daemon.sock").exists());
    let lock = fs::File::open(home.join("daemon.lock")).unwrap();
    lock.try_lock().expect("the lock was given back");
}
