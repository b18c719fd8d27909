//! A sandbox of a user whom the machine does not know.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::home::Home;

/// A name that no machine has, and a folder there is on every one.
const NAME: &str = "zeno-nobody";
const HOME: &str = "/home/zeno-nobody";

#[test]
fn it_exists_inside_only_and_is_no_change() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let before = ["/etc/passwd", "/etc/group"].map(|path| fs::read(path).unwrap());
    let request = json!({
        "name": "theirs",
        "workspace": "none",
        "account": { "name": NAME, "home": HOME },
        "context": { "env": [{ "name": "PATH", "value": "/usr/bin:/bin" }] },
    });
    let made = home.ask("POST", "/v1/sandboxes", request.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    let said = home.ok(&["exec", "theirs", "--", "sh", "-c", "id -un; pwd; echo ~; ls -A; stat -c %U ."]);
    assert_eq!(said, format!("{NAME}\n{HOME}\n{HOME}\n{NAME}\n"));
    assert_eq!(home.ok(&["diff", "theirs", "--name-status"]), "");
    home.ok(&["exec", "theirs", "--", "sh", "-c", "echo mine > ~/file"]);

    // The same once its processes are made anew, and in a sandbox of what it wrote.
    home.ok(&["stop", "theirs"]);
    home.ok(&["start", "theirs"]);
    home.ok(&["fork", "theirs", "--name", "copy"]);
    for which in ["theirs", "copy"] {
        let said = home.ok(&["exec", which, "--", "sh", "-c", "id -un; pwd; cat file; stat -c %U file"]);
        assert_eq!(said, format!("{NAME}\n{HOME}\nmine\n{NAME}\n"));
    }

    assert!(!Path::new(HOME).exists());
    assert_eq!(["/etc/passwd", "/etc/group"].map(|path| fs::read(path).unwrap()), before);
}

#[test]
fn one_that_would_break_its_line_is_refused() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    for (name, folder) in [("a\nroot", "/home/a"), ("a", "/home/a:x"), ("a", "relative"), ("A", "/home/a")] {
        let request = json!({ "workspace": "none", "account": { "name": name, "home": folder } });
        let answer = home.ask("POST", "/v1/sandboxes", request.to_string().as_bytes());
        assert_eq!((answer.status, answer.json()["code"].clone()), (400, json!("bad_request")), "{name:?}");
    }
    assert_eq!(home.ok(&["list", "--json"]).trim(), "[]");
}
