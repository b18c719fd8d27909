//! Files in and out of a sandbox, by `zeno cp` and by plain HTTP.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::home::{Home, finish};
use crate::http::encoded;

/// Names that break what treats them as text, as lines or as words.
const NAMES: [&[u8]; 6] = [b"plain", b"two words", b"new\nline", b"\xff\xfe", b"-dash", b"$(tick)'\""];

#[test]
fn a_folder_comes_back_as_it_went() {
    let home = Home::new();
    home.create("box", &[]);
    let yard = home.yard();
    let tree = yard.join("tree");
    fs::create_dir_all(tree.join("sub/empty")).unwrap();
    for (name, mode) in NAMES.iter().zip([0o644, 0o600, 0o755, 0o400, 0o640, 0o666]) {
        let path = tree.join("sub").join(OsStr::from_bytes(name));
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    symlink("sub/plain", tree.join("link")).unwrap();
    symlink("/no/such/target", tree.join("dangling")).unwrap();
    fs::set_permissions(tree.join("sub"), Permissions::from_mode(0o750)).unwrap();

    let copied = home.json(&["cp", "tree", "box:/var/tmp/there"]);
    assert_eq!(copied, json!({ "files": 6, "folders": 3, "links": 2, "skipped": 0 }));
    home.ok(&["cp", "box:/var/tmp/there", "back"]);
    assert_eq!(listing(&yard.join("back")), listing(&tree));

    // A folder that exists takes the source inside.
    home.ok(&["cp", "tree/link", "box:/var/tmp/there"]);
    fs::create_dir(yard.join("into")).unwrap();
    home.ok(&["cp", "box:/var/tmp/there", "into"]);
    assert!(yard.join("into/there/sub/plain").exists());
    assert!(!Path::new("/var/tmp/there").exists(), "the host has none of it");
}

/// Each path with its permissions and contents.
pub(crate) type Listing = Vec<(Vec<u8>, u32, Vec<u8>)>;

/// All below a folder.
pub(crate) fn listing(root: &Path) -> Listing {
    let mut all = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            let contents = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap_or_else(|error| error.to_string().into_bytes())
            };
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            all.push((name, metadata.permissions().mode(), contents));
        }
    }
    all.sort();
    all
}

#[test]
fn single_files_and_streams() {
    let home = Home::new();
    home.create("box", &[]);
    home.create("other", &[]);
    let yard = home.yard();
    let big: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(yard.join("big"), &big).unwrap();
    home.ok(&["cp", "big", "box:/var/tmp/zeno-real-big"]);
    home.ok(&["cp", "box:/var/tmp/zeno-real-big", "other:/var/tmp/zeno-real-big"]);
    home.ok(&["cp", "other:/var/tmp/zeno-real-big", "again"]);
    assert!(fs::read(yard.join("again")).unwrap() == big);
    assert!(home.zeno(&["cp", "box:/var/tmp/zeno-real-big", "-"]).stdout == big);

    let mut put = home.command(&["cp", "-", "box:/var/tmp/zeno-real-typed"]);
    let ran = finish(put.stdin(Stdio::piped()).spawn().unwrap(), b"typed");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(home.exec("box", "cat /var/tmp/zeno-real-typed").out(), "typed");

    let ran = home.zeno(&["cp", "box:/no/such/file", "."]);
    assert_eq!(ran.code, 6, "{ran}");
    let ran = home.zeno(&["cp", "no-such-file", "box:/var/tmp"]);
    assert_eq!(ran.code, 6, "{ran}");
}

#[test]
fn files_by_http() {
    let home = Home::new();
    home.create("box", &[]);
    let at = |route: &str, path: &[u8], more: &str| {
        format!("/v1/sandboxes/box/files{route}?path={}{more}", encoded(path))
    };
    let made = home.ask("POST", &at("/mkdir", b"/var/tmp/a/b", "&mode=750"), b"");
    assert_eq!(made.status, 204, "{made:?}");
    for name in NAMES {
        let path = [b"/var/tmp/a/b/", name].concat();
        assert_eq!(home.ask("PUT", &at("", &path, "&mode=640"), name).status, 204);
        assert_eq!(home.ask("GET", &at("", &path, ""), b"").body, name);
    }
    let stat = home.ask("GET", &at("/stat", b"/var/tmp/a/b/plain", ""), b"").json();
    assert_eq!((&stat["kind"], &stat["size"], &stat["mode"]), (&json!("file"), &json!(5), &json!(0o640)));
    let list = home.ask("GET", &at("/list", b"/var/tmp/a/b", ""), b"").json();
    let entries = list["entries"].as_array().unwrap();
    assert_eq!(entries.len(), NAMES.len());
    assert!(entries.iter().any(|entry| entry["name"] == json!([0xff, 0xfe])));

    let full = home.ask("DELETE", &at("", b"/var/tmp/a", ""), b"");
    assert_eq!((full.status, full.json()["code"].clone()), (400, json!("bad_request")));
    assert_eq!(home.ask("DELETE", &at("", b"/var/tmp/a", "&recursive"), b"").status, 204);
    let gone = home.ask("GET", &at("/stat", b"/var/tmp/a", ""), b"");
    assert_eq!((gone.status, gone.header("content-type")), (404, Some("application/problem+json")));
    assert_eq!(home.ask("GET", &at("", b"/var/tmp", ""), b"").status, 400, "a folder is no file");
    assert_eq!(home.ask("GET", &at("", b"relative", ""), b"").status, 400);
}
