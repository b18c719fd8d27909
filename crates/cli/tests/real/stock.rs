//! Sandboxes made ahead of time: nothing of one run is seen by the next, and nothing outlives the daemon.

use std::collections::BTreeSet;
use std::fs;

use crate::home::Home;
use crate::traces::Stat;
use crate::wait::until;

#[test]
fn what_one_run_leaves_behind_the_next_does_not_see() {
    let home = Home::new();
    let look = "stat -c '%a %F' / /tmp /run /var/tmp .; ls -A /tmp /run .; getfattr -d -m - / /tmp . 2>&1 | \
                grep user; cat /proc/sys/kernel/hostname; ulimit -n; umask; pwd";
    let fresh = home.run(&[], look).out();
    let dirty = [
        "touch /tmp/left ./left",
        "chmod 700 /tmp || true",
        "chmod 700 .",
        "mkdir /tmp/gone && rmdir /tmp/gone",
        "touch ./gone && rm ./gone",
        "setfattr -n user.left -v 1 . || true; setfattr -n user.left -v 1 /tmp || true; setfattr -n user.left -v 1 / || true",
        "chattr +S / /tmp . 2>&1 || true",
        "touch -d @1 / /tmp . 2>&1 || true",
        "(while :; do sleep 1; done) & echo $! > /dev/null",
        "true",
    ];
    for line in dirty {
        // Twice: the second may get what the first gave back.
        for _ in 0..2 {
            let ran = home.run(&[], line);
            assert_eq!(ran.code, 0, "{line}: {ran}");
        }
        for _ in 0..3 {
            assert_eq!(home.run(&[], look).out(), fresh, "after {line}");
        }
    }
}

#[test]
fn a_folder_in_which_nothing_was_written_is_used_again() {
    let home = Home::new();
    let folders = || -> BTreeSet<u64> {
        let stock = fs::read_dir(home.path().join("stock")).unwrap().map(Result::unwrap);
        stock.map(|entry| std::os::unix::fs::DirEntryExt::ino(&entry)).collect()
    };
    for _ in 0..10 {
        assert_eq!(home.run(&[], "true").code, 0);
    }
    let before = until("the stock to be filled", || Some(folders()).filter(|found| found.len() >= 2));
    for _ in 0..10 {
        assert_eq!(home.run(&[], "true").code, 0);
    }
    // One more may have been made while the last one's init was still ending; without any use of the old ones there would
    // be as many as are ever kept.
    let after =
        until("the same folders to be there", || Some(folders()).filter(|found| found.is_superset(&before)));
    assert!(after.len() <= before.len() + 3, "{after:?}, before {before:?}");
}

#[test]
fn what_nobody_took_ends_with_the_daemon() {
    let home = Home::new();
    assert_eq!(home.run(&[], "true").code, 0);
    let daemon = home.daemon().unwrap();
    let spares = || {
        let entries = fs::read_dir("/proc").unwrap().map(Result::unwrap);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.session == daemon && stat.state != 'Z'))
            .count()
    };
    // Daemon, launcher, its spare, and one made ahead of time.
    until("one to be in stock", || (spares() >= 4).then_some(()));
    home.crash();
    until("all of it to end", || (spares() == 0).then_some(()));
    assert_eq!(home.run(&[], "echo well").out(), "well\n");
    home.ok(&["daemon", "stop"]);
    let left: Vec<_> = fs::read_dir(home.path().join("stock")).unwrap().map(Result::unwrap).collect();
    assert!(left.is_empty(), "{left:?}");
}
