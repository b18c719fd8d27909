//! Many sandboxes that live at once: each works, each costs little, and nothing is left of them. A thousand of them are
//! `cargo xtask soak crowd`.

use std::collections::BTreeSet;
use std::fs;

use crate::home::{Home, is_root};
use crate::wait::until;

const CROWD: usize = 200;

#[test]
fn two_hundred_live_at_once_answer_cost_little_and_leave_nothing() {
    let home = Home::new();
    // One that came and went: what the daemon makes once and keeps is there.
    assert_eq!(home.run(&[], "true").code, 0);
    let before = home.all_traces();
    let names: Vec<String> = (0..CROWD).map(|number| format!("box{number}")).collect();
    for name in &names {
        home.create(name, &[]);
        let written = home.exec(name, &format!("echo {name} > /var/tmp/written"));
        assert_eq!(written.code, 0, "{name}: {written}");
    }
    let living: BTreeSet<i32> = home.processes().into_iter().map(|(pid, _)| pid).collect();
    assert!(living.len() > CROWD, "{} processes", living.len());
    // Nobody but root may look at the pages of an init: whoever is inside could be its user.
    if is_root() {
        let used: u64 = living.iter().map(|pid| proportional_size(*pid)).sum();
        let each = used / CROWD as u64;
        assert!(each < 1024, "{each} KiB each, the daemon and its launcher included");
    }
    // All of them, after all were made: the last does not answer for the first.
    for name in &names {
        assert_eq!(home.exec(name, "cat /var/tmp/written").out(), format!("{name}\n"));
    }
    home.ok(&["destroy", "--all", "--yes"]);
    until("the machine to be as before", || (home.all_traces() == before).then_some(()));
}

/// In KiB. Shared pages count by share, so that a sum counts each once.
fn proportional_size(pid: i32) -> u64 {
    let told = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let size = told.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
    size.unwrap().trim().parse().unwrap()
}
