//! `zeno demo`, as the README has it run.

use std::fs;

use crate::home::{Home, finish};

#[test]
fn the_demonstration_shows_what_it_says_and_leaves_nothing() {
    let home = Home::new();
    let scratch = home.yard().join("tmp");
    fs::create_dir(&scratch).unwrap();
    let ran = finish(home.command(&["demo"]).env("TMPDIR", &scratch).spawn().unwrap(), b"");
    assert_eq!(ran.code, 0, "{ran}");
    let told = ran.out();
    let mut rest = told.as_str();
    let entries = fs::read_dir("/etc").unwrap().count();
    // One after the other: what is said of a step follows the step.
    for text in [
        "$ zeno run --workspace . -- cat notes.txt\nwritten on the real machine\n",
        "$ zeno run --workspace . -- cat notes.txt\nwritten on the real machine\n",
        "$ zeno run --workspace . -- /bin/sh -c 'rm -rf /etc /home notes.txt",
        "cannot access",
        &format!("/etc has {entries} entries, notes.txt says \"written on the real machine\""),
        "$ zeno create --workspace . --name demo-",
        "-- cat notes.txt\nwritten on the real machine\n",
        "$ zeno status demo-",
        "1 path moved on since",
        "caveats",
        "cat notes.txt'\nfrom inside\n",
        "On the real machine notes.txt says \"edited on the real machine\".",
        "$ zeno refresh demo-",
        "$ zeno snapshot demo-",
        "-- rm notes.txt\n",
        "$ zeno diff demo-",
        "notes.txt",
        "$ zeno rollback demo-",
        "$ zeno snapshots rm demo-",
        "-- cat notes.txt\nedited on the real machine\n",
        "$ zeno race --from demo-",
        "shout",
        "On the real machine notes.txt says \"EDITED ON THE REAL MACHINE\".",
        "$ zeno undo",
        "And now \"edited on the real machine\".",
        "$ zeno destroy demo-",
        "Yours to try",
    ] {
        let at = rest.find(text).unwrap_or_else(|| panic!("{text:?} is missing in\n{rest}\nof\n{ran}"));
        rest = &rest[at + text.len()..];
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "its folder is gone");
    let left = home.json(&["list"]);
    let names: Vec<_> =
        left.as_array().unwrap().iter().filter_map(|sandbox| sandbox["name"].as_str()).collect();
    assert!(names.iter().all(|name| !name.starts_with("demo-")), "{names:?}");
}
