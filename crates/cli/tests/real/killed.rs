//! The daemon, killed at any moment of a promotion: the next one brings it to one end or the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::files::{Listing, listing};
use crate::home::{Home, finish};
use crate::yard::Yard;

/// Growing moments, from the first request to beyond its end. In the last round it was told to be done.
const LAST: u32 = 35;
const LAST_UNDO: u32 = 20;
/// Of each: changed, removed and made.
const FILES: u32 = 100;

#[test]
fn never_half_a_promotion() {
    let home = Home::new();
    let place = Place::new(&home);
    let old = place.state();
    let began = Instant::now();
    home.ok(&["promote", "box"]);
    let whole = began.elapsed();
    let new = place.state();
    assert_ne!(old, new);
    home.ok(&["undo"]);
    assert!(place.state() == old);

    let mut ends = [0; 2];
    for round in 0..=LAST {
        let promote = home.command(&["promote", "box"]).spawn().unwrap();
        if round == LAST {
            assert_eq!(finish(promote, b"").code, 0);
            home.crash();
        } else {
            // The moment is the point. A quarter more than it took alone, so that most of the last ones come through.
            thread::sleep(whole * round * 5 / (LAST * 4));
            home.crash();
            finish(promote, b"");
        }
        let promotions = home.json(&["promotions"]);
        let last = promotions.as_array().unwrap().iter().rfind(|promotion| promotion["state"] == "applied");
        let now = place.state();
        match last {
            Some(promotion) => {
                assert!(now == new, "round {round}: promoted, and not as it should be");
                assert_told(promotion);
                home.ok(&["undo"]);
                assert!(place.state() == old, "round {round}: undone, and not as it was");
            }
            None => assert!(now == old, "round {round}: not promoted, and not as it was"),
        }
        ends[usize::from(last.is_some())] += 1;
        assert_eq!(place.strays(), Vec::<PathBuf>::new(), "round {round}");
    }
    assert!(ends[0] > 0 && ends[1] > 0, "old and new were both seen: {ends:?}, {whole:?}");
}

#[test]
fn never_half_an_undo() {
    let home = Home::new();
    let place = Place::new(&home);
    let old = place.state();
    home.ok(&["promote", "box"]);
    let new = place.state();
    let began = Instant::now();
    home.ok(&["undo"]);
    let whole = began.elapsed();
    assert!(place.state() == old && new != old);

    let mut ends = [0; 2];
    for round in 0..=LAST_UNDO {
        home.ok(&["promote", "box"]);
        let undo = home.command(&["undo"]).spawn().unwrap();
        if round == LAST_UNDO {
            assert_eq!(finish(undo, b"").code, 0);
            home.crash();
        } else {
            thread::sleep(whole * round * 5 / (LAST_UNDO * 4));
            home.crash();
            finish(undo, b"");
        }
        let promotions = home.json(&["promotions"]);
        let last = promotions.as_array().unwrap().last().unwrap();
        let is_undone = match last["state"].as_str().unwrap() {
            "undone" => true,
            "applied" => false,
            other => panic!("round {round}: {other}"),
        };
        let expected = if is_undone { &old } else { &new };
        assert!(place.state() == *expected, "round {round}: {}, and not as it should be", last["state"]);
        if !is_undone {
            home.ok(&["undo"]);
            assert!(place.state() == old, "round {round}: undone, and not as it was");
        }
        ends[usize::from(is_undone)] += 1;
        assert_eq!(place.strays(), Vec::<PathBuf>::new(), "round {round}");
    }
    assert!(ends[0] > 0 && ends[1] > 0, "old and new were both seen: {ends:?}, {whole:?}");
}

/// Its record says what was done, whoever wrote it.
#[track_caller]
fn assert_told(promotion: &Value) {
    let counts =
        json!({ "deleted": FILES, "created": FILES, "modified": FILES, "merged": 0, "kept": 0, "same": 0 });
    assert_eq!(promotion["counts"], counts, "{promotion}");
    assert_eq!(promotion["commits"].as_array().map(Vec::len), Some(1), "{promotion}");
}

/// A repository, and a sandbox that has changed some hundred files of it.
struct Place {
    folder: PathBuf,
    repository: PathBuf,
}

impl Place {
    fn new(home: &Home) -> Self {
        let last = FILES - 1;
        let yard = Yard::new(
            home,
            &format!(
                "mkdir kept gone; for n in $(seq 0 {last}); do echo $n > kept/$n; echo $n > gone/$n; done"
            ),
        );
        let ran = home.exec(
            "box",
            &format!(
                "set -e; for n in $(seq 0 {last}); do echo more >> kept/$n; rm gone/$n; echo new > kept/new-$n; done; \
                 git add -A; git commit -qm second"
            ),
        );
        assert_eq!(ran.code, 0, "{ran}");
        // It needs no processes to be promoted, and none are to be killed with the daemon.
        home.ok(&["stop", "box"]);
        Self { folder: home.yard(), repository: yard.path }
    }

    /// All files, and all refs. Objects that nothing refers to do not count.
    fn state(&self) -> (Listing, Vec<u8>) {
        let mut files = listing(&self.repository);
        files.retain(|(name, ..)| !name.starts_with(b".git"));
        let refs = Command::new("git").arg("for-each-ref").current_dir(&self.repository).output().unwrap();
        assert!(refs.status.success(), "{refs:?}");
        (files, refs.stdout)
    }

    /// What should not be beside the repository, nor in its git folder.
    fn strays(&self) -> Vec<PathBuf> {
        let names = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let all =
            names(&self.folder).chain(names(&self.repository)).chain(names(&self.repository.join(".git")));
        let is_stray = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(".zeno") || name.ends_with(".lock")
        };
        all.filter(is_stray).collect()
    }
}
