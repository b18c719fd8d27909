//! `zeno cp` of whole folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use model::exec::{FrameKind, Outcome};

use crate::daemon::{Answering, Request, Wire};
use crate::program::{output, text};

#[test]
fn a_folder_goes_in_with_modes_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("tool"), "#!").unwrap();
    fs::write(tree.join("sub/data"), "x").unwrap();
    symlink("tool", tree.join("link")).unwrap();
    for (path, mode) in [("tool", 0o755), ("sub/data", 0o640), ("sub", 0o500), ("", 0o755)] {
        fs::set_permissions(tree.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    let daemon = Answering::start(|request, wire| {
        if request.line.starts_with("GET /v1/sandboxes/web/files/stat") {
            wire.answer(200, stat("srv", "directory", 0o755).as_bytes());
        } else if request.line.ends_with("/exec") {
            wire.upgrade();
            wire.tell(FrameKind::Ended, &Outcome::Exited { code: 0 });
        } else {
            wire.answer(204, b"");
        }
    });
    let ended = output(daemon.home(), &["cp", "--json", tree.to_str().unwrap(), "web:/srv"]);
    assert_eq!((text(&ended.stderr), ended.status.code()), ("", Some(0)));
    insta::assert_snapshot!(text(&ended.stdout), @r#"
    {
      "files": 2,
      "folders": 2,
      "links": 1,
      "skipped": 0
    }
    "#);
    insta::assert_snapshot!(daemon.asked().join("\n"), @r#"
    GET /v1/sandboxes/web/files/stat?path=/srv
    POST /v1/sandboxes/web/exec {"argv":["chmod","500","--","/srv/tree/sub"],"env":[],"cwd":"/","stdin":false}
    POST /v1/sandboxes/web/exec {"argv":["ln","-sfn","--","tool","/srv/tree/link"],"env":[],"cwd":"/","stdin":false}
    POST /v1/sandboxes/web/files/mkdir?path=/srv/tree&mode=755 {}
    POST /v1/sandboxes/web/files/mkdir?path=/srv/tree/sub&mode=700 {}
    PUT /v1/sandboxes/web/files?path=/srv/tree/sub/data&mode=640 x
    PUT /v1/sandboxes/web/files?path=/srv/tree/tool&mode=755 #!
    "#);
}

#[test]
fn a_folder_comes_out() {
    let daemon = Answering::start(|request, wire| sandbox(request, wire, "note"));
    let folder = tempfile::tempdir().unwrap();
    let ended = output(daemon.home(), &["cp", "web:/srv/d", folder.path().to_str().unwrap()]);
    assert_eq!((text(&ended.stderr), ended.status.code()), ("", Some(0)));
    let copy = folder.path().join("d/note");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "contents");
    assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_name_that_leads_out_of_the_folder_is_refused() {
    let daemon = Answering::start(|request, wire| sandbox(request, wire, "../escaped"));
    let folder = tempfile::tempdir().unwrap();
    let ended = output(daemon.home(), &["cp", "web:/srv/d", folder.path().to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(7));
    insta::assert_snapshot!(text(&ended.stderr), @r#"error: the sandbox lists a file whose name is none: "../escaped""#);
    assert!(!folder.path().join("escaped").exists());
}

/// A folder `/srv/d` with one file, setuid, of this name.
fn sandbox(request: &Request, wire: &mut Wire, name: &str) {
    let (route, path) = request.line.split_once("?path=").unwrap();
    let file = stat(name, "file", 0o4755);
    match (route.rsplit('/').next().unwrap(), path) {
        ("stat", "/srv/d") => wire.answer(200, stat("d", "directory", 0o755).as_bytes()),
        ("stat", _) => wire.answer(200, file.as_bytes()),
        ("list", "/srv/d") => wire.answer(200, format!(r#"{{"entries":[{file}]}}"#).as_bytes()),
        ("files", _) => wire.answer(200, b"contents"),
        other => panic!("{other:?}"),
    }
}

fn stat(name: &str, kind: &str, mode: u32) -> String {
    format!(
        r#"{{"name":"{name}","kind":"{kind}","size":1,"mode":{mode},"uid":0,"gid":0,"modified":"2026-05-01T12:00:00Z"}}"#
    )
}
