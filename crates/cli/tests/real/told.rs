//! What there is much of: told whole to programs, and to people as much as they read, with the way to the rest.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixListener;

use crate::home::Home;

#[test]
fn sixty_shortcomings_and_sixty_changes_are_all_named() {
    let home = Home::new();
    let work = home.yard().join("work");
    fs::create_dir(&work).unwrap();
    let (sockets, files): (Vec<_>, Vec<_>) =
        (0..60).map(|number| (format!("socket{number}"), format!("file{number:02}"))).unzip();
    let listeners: Vec<_> = sockets.iter().map(|name| UnixListener::bind(work.join(name)).unwrap()).collect();
    for name in &files {
        fs::write(work.join(name), "old").unwrap();
    }
    home.ok(&["create", "--name", "box", "--workspace", work.to_str().unwrap()]);
    for name in &files {
        fs::write(work.join(name), "newer").unwrap();
    }
    let status = home.json(&["status", "box"]);
    let caveats = status["sandbox"]["caveats"].as_array().unwrap().iter();
    let named: BTreeSet<&str> = caveats.filter_map(|caveat| caveat["path"].as_str()).collect();
    for name in &sockets {
        assert!(named.contains(work.join(name).to_str().unwrap()), "{name}: {named:?}");
    }
    let behind: Vec<String> = serde_json::from_value(status["freshness"]["behind"].clone()).unwrap();
    assert_eq!(behind, files);

    let shown = home.ok(&["status", "box"]);
    assert_eq!(shown.matches("/socket").count(), 50, "{shown}");
    assert_eq!(shown.matches("\n  file").count(), 50, "{shown}");
    assert!(shown.contains("  and 10 more, listed by zeno status box --json\n"), "{shown}");
    drop(listeners);
}
