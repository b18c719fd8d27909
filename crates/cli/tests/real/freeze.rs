//! Processes that are to stand still, for a snapshot or a pause, and those that cannot be made to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::home::{Home, is_root};
use crate::wait::until;

/// Processes that make others and end, all the time: whoever is told to stop has a child already.
#[test]
fn a_storm_of_processes_stands_still_or_there_is_no_snapshot() {
    let home = Home::new();
    // Far more than run at once: those that have ended count until they are reaped, and a busy machine takes its time.
    home.create("box", &["--pids", "2000", "--best-effort"]);
    // Each generation gives two files its number, one after the other, makes the next one and ends.
    let made = home.exec(
        "box",
        "mkdir /tmp/s; cd /tmp/s; for c in 1 2 3 4 5 6; do touch a.$c.0 b.$c.0; done
         echo 'mv a.$1.$2 a.$1.$3; mv b.$1.$2 b.$1.$3; sh ../next $1 $3 $(($3 + 1)) &' > ../next",
    );
    assert_eq!(made.code, 0, "{made}");
    home.detach("box", "cd /tmp/s; for c in 1 2 3 4 5 6; do sh ../next $c 0 1 & done");
    let oldest = || generations(&home.exec("box", "ls /tmp/s").out()).values().map(|pair| pair.0).min();
    for round in 0..5 {
        let then = oldest();
        until("all of them to go on", || (oldest() > then).then_some(()));
        let taken = home.zeno(&["snapshot", "box", "--name", &format!("s{round}")]);
        if taken.code != 0 {
            assert!(taken.err().contains("the sandbox does not stand still"), "{taken}");
            assert!(taken.err().contains("try: or end what runs"), "{taken}");
            continue;
        }
        home.ok(&["restore", &format!("s{round}"), "--name", "look"]);
        let seen = home.exec("look", "ls /tmp/s").out();
        assert_eq!(seen.lines().count(), 12, "round {round}: {seen}");
        for (chain, (first, second)) in generations(&seen) {
            assert!(first == second || first == second + 1, "round {round}, {chain}: {seen}");
        }
        home.ok(&["destroy", "look"]);
    }
    let then = oldest();
    until("all of them to go on", || (oldest() > then).then_some(()));
}

/// One that the machine's own freezer holds hears of nothing. Only root can have it do that.
#[test]
fn what_does_not_stand_still_is_refused_and_goes_on() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    home.create("box", &[]);
    let counting = home.detach("box", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done");
    let count = || home.ok(&["logs", "--exec", &counting, "box"]).lines().count();
    home.ok(&["exec", "-d", "box", "--", "sleep", "98765"]);
    let held = until("it to sleep", || {
        let mut processes = home.processes().into_iter();
        processes.find(|(_, line)| line.starts_with("sleep 98765")).map(|(pid, _)| pid)
    });
    let freezer = Freezer::holding(held);
    for verb in ["snapshot", "pause"] {
        let refused = home.zeno(&[verb, "box"]);
        assert_eq!(refused.code, 3, "{verb}: {refused}");
        let told = refused.err();
        assert!(told.contains("error: the sandbox does not stand still: process "), "{verb}: {refused}");
        assert!(told.contains("try: or end what runs; what it wrote is kept: `zeno stop box`"), "{refused}");
        let then = count();
        until("the others to go on", || (count() > then).then_some(()));
        assert_eq!(home.state("box"), "active");
    }
    assert_eq!(home.json(&["snapshots"]), json!([]));
    freezer.let_go();
    home.ok(&["snapshot", "box"]);
    let then = count();
    until("it to go on", || (count() > then).then_some(()));
}

/// Who has made a process with `vfork` sleeps, deaf to every signal, until that one is a program: it cannot be stopped, and need
/// not be.
#[test]
fn who_waits_for_a_newborn_is_no_obstacle() {
    let home = Home::new();
    home.create("box", &[]);
    let waits = "import ctypes, time; ctypes.CDLL(None).vfork() or time.sleep(1000)";
    home.ok(&["exec", "-d", "box", "--", "python3", "-c", waits]);
    let states = || home.exec("box", "cat /proc/[0-9]*/stat | grep python3 | cut -d ' ' -f 3 | sort").out();
    until("one to wait for the other", || (states() == "D\nS\n").then_some(()));
    home.ok(&["snapshot", "box"]);
    home.ok(&["pause", "box"]);
    home.ok(&["resume", "box"]);
    assert_eq!(states(), "D\nS\n");
}

/// Of each chain, the number that its first file has, and that of its second.
fn generations(listed: &str) -> BTreeMap<String, (u64, u64)> {
    let mut chains: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for name in listed.lines() {
        let [file, chain, number] = name.split('.').collect::<Vec<_>>()[..] else { panic!("{listed}") };
        let pair = chains.entry(chain.to_owned()).or_default();
        let number = number.parse().unwrap();
        if file == "a" { pair.0 = number } else { pair.1 = number }
    }
    chains
}

/// A cgroup in which the kernel holds a process. Dropped, it lets it go and is gone.
struct Freezer {
    pid: i32,
    folder: PathBuf,
    switch: PathBuf,
    words: [&'static str; 2],
}

impl Freezer {
    fn holding(pid: i32) -> Self {
        let name = format!("test-{pid}");
        let first = Path::new("/sys/fs/cgroup/freezer");
        let freezer = if first.is_dir() {
            let folder = first.join(name);
            Self { pid, switch: folder.join("freezer.state"), folder, words: ["FROZEN", "THAWED"] }
        } else {
            let folder = Path::new("/sys/fs/cgroup").join(name);
            Self { pid, switch: folder.join("cgroup.freeze"), folder, words: ["1", "0"] }
        };
        fs::create_dir(&freezer.folder).unwrap();
        freezer.put_into(&freezer.folder);
        fs::write(&freezer.switch, freezer.words[0]).unwrap();
        until("it to be held", || {
            (fs::read_to_string(&freezer.switch).unwrap().trim() == freezer.words[0]).then_some(())
        });
        freezer
    }

    fn put_into(&self, folder: &Path) {
        fs::write(folder.join("cgroup.procs"), self.pid.to_string()).unwrap();
    }

    fn let_go(&self) {
        fs::write(&self.switch, self.words[1]).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.let_go();
        self.put_into(self.folder.parent().unwrap());
        fs::remove_dir(&self.folder).unwrap();
    }
}
