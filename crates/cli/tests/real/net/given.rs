//! What a sandbox was given, and the record as lines of a file.

use std::fs;

use serde_json::Value;

use crate::home::Home;
use crate::wait::until;

#[test]
fn variables_names_and_the_proxy_are_told() {
    let home = Home::new();
    home.create("web", &["--net", "allow:host:9", "-e", "COLOUR=blue"]);
    let line = "python3 -c 'import socket; print(socket.gethostbyname(\"host\"))'";
    let address = home.exec("web", line).out();
    let shown = home.ok(&["env", "web"]);
    assert!(shown.contains("export COLOUR='blue'\n"), "{shown}");
    assert!(shown.contains(&format!("# host is {} and ", address.trim())), "{shown}");
    assert!(shown.contains("# for tools that insist on a proxy: http://zeno.proxy:3128\n"), "{shown}");
    let told = home.json(&["env", "web"]);
    assert_eq!((&told["names"][0]["name"], &told["authority"]), (&Value::from("host"), &Value::from(false)));
    home.ok(&["stop", "web"]);
    assert_eq!(home.zeno(&["env", "web"]).code, 3);
    home.create("none", &[]);
    assert_eq!(home.json(&["env", "none"])["proxy"], Value::Null);
}

/// Where the authority is, and which one: what programs inside find there.
#[test]
fn the_authority_is_told_as_it_is_inside() {
    let home = Home::new();
    home.create("web", &["--net", "allow:a.test+inspect"]);
    let told = home.json(&["env", "web"]);
    let trusts = &told["trusts"];
    let bundle = trusts["bundle"].as_str().unwrap();
    let line = format!(
        "awk '/BEGIN CERT/ {{ one = \"\" }} {{ one = one $0 \"\\n\" }} END {{ printf \"%s\", one }}' {bundle} \
         | openssl x509 -noout -fingerprint -sha256 -subject -nameopt RFC2253"
    );
    let inside = home.exec("web", &line).out();
    let fingerprint = trusts["fingerprint"].as_str().unwrap();
    assert!(
        inside.to_lowercase().contains(&format!("sha256 fingerprint={}", fingerprint.to_lowercase())),
        "{inside}"
    );
    assert!(inside.contains(trusts["subject"].as_str().unwrap()), "{inside} {trusts}");
    let shown = home.ok(&["env", "web"]);
    assert!(
        shown.contains(fingerprint) && shown.contains(&format!("# it is among those in {bundle}")),
        "{shown}"
    );
    // The same after its processes were made again.
    home.ok(&["stop", "web"]);
    home.ok(&["start", "web"]);
    assert_eq!(&home.json(&["env", "web"])["trusts"], trusts);
}

/// The same as in the store, in the order in which it happened, for nobody else to read.
#[test]
fn requests_are_lines_of_a_file_too() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    home.create("web", &["--net", "allow:host:9"]);
    home.exec(
        "web",
        "getent hosts not-allowed.test; python3 -c 'import socket; socket.create_connection((\"host\", 9))'",
    );
    let path = home.path().join("requests.jsonl");
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let ended = |lines: &[Value]| lines.iter().any(|line| line["name"] == "host" && !line["end"].is_null());
    let lines =
        until("the end of the connection to be written", || Some(lines()).filter(|lines| ended(lines)));
    let stored = home.json(&["requests"]);
    for record in stored.as_array().unwrap() {
        let last = lines.iter().rfind(|line| line["id"] == record["id"]);
        assert_eq!(last, Some(record));
    }
    assert!(
        lines.iter().any(|line| line["name"] == "not-allowed.test" && line["verdict"] == "deny"),
        "{lines:?}"
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
