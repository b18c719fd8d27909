//! `zeno mcp install`: the files of clients, changed with care.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::program::{text, zeno};

/// In a project of its own, below a home of its own.
fn install(folder: &Path, arguments: &[&str]) -> Output {
    let project = folder.join("project");
    fs::create_dir_all(&project).unwrap();
    let mut command = zeno(&folder.join("state"), &[&["mcp", "install"], arguments].concat());
    command.env("HOME", folder).current_dir(project).output().unwrap()
}

fn entry(folder: &Path) -> Value {
    let state = folder.join("state");
    json!({ "command": env!("CARGO_BIN_EXE_zeno"), "args": ["mcp"], "env": { "ZENO_HOME": state } })
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn nothing_is_written_that_nobody_agreed_to() {
    let folder = tempfile::tempdir().unwrap();
    let asked = install(folder.path(), &["claude-code"]);
    assert_eq!(asked.status.code(), Some(4), "{asked:?}");
    assert!(text(&asked.stderr).contains("+") && text(&asked.stderr).contains("pass --yes"), "{asked:?}");
    let printed = install(folder.path(), &["claude-code", "--print"]);
    assert_eq!(printed.status.code(), Some(0));
    let shown: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(shown, json!({ "mcpServers": { "zeno": entry(folder.path()) } }));
    assert_eq!(fs::read_dir(folder.path().join("project")).unwrap().count(), 0);
}

#[test]
fn each_client_has_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(folder.path());
    let servers = json!({ "mcpServers": { "zeno": entry } });
    let mut typed = entry;
    typed["type"] = json!("stdio");
    let vscode = json!({ "servers": { "zeno": typed } });
    for (arguments, path, expected) in [
        (&["claude-code"][..], "project/.mcp.json", &servers),
        (&["claude-code", "--scope", "user"], ".claude.json", &servers),
        (&["cursor"], "project/.cursor/mcp.json", &servers),
        (&["cursor", "--scope", "user"], ".cursor/mcp.json", &servers),
        (&["vscode"], "project/.vscode/mcp.json", &vscode),
        (&["vscode", "--scope", "user"], ".config/Code/User/mcp.json", &vscode),
    ] {
        let done = install(folder.path(), &[arguments, &["--yes"]].concat());
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert_eq!(read(&folder.path().join(path)), *expected, "{path}");
    }
    for (arguments, path) in [
        (&["codex"][..], ".codex/config.toml"),
        (&["codex", "--scope", "project"], "project/.codex/config.toml"),
    ] {
        let done = install(folder.path(), &[arguments, &["--yes"]].concat());
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let written = fs::read_to_string(folder.path().join(path)).unwrap();
        assert!(written.starts_with("[mcp_servers.zeno]\ncommand = "), "{written}");
    }
}

#[test]
fn what_is_there_stays_and_a_copy_of_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), &["claude-code", "--print"]);
    let path = folder.path().join("project/.mcp.json");
    let before = "{\n  // ours\n  \"mcpServers\": { \"other\": { \"url\": \"x\" } }\n}\n";
    fs::write(&path, before).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let done = install(folder.path(), &["claude-code", "--yes", "--json"]);
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["outcome"], "written");
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.contains("// ours") && after.contains("\"other\": { \"url\": \"x\" }"), "{after}");
    let copy = Path::new(answer["copy"].as_str().unwrap());
    assert_eq!(fs::read_to_string(copy).unwrap(), before);
    for file in [&path, copy] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
    let again = install(folder.path(), &["claude-code", "--yes"]);
    assert!(text(&again.stdout).contains("has it already"), "{again:?}");
    assert_eq!(fs::read_dir(folder.path().join("project")).unwrap().count(), 2);
}

#[test]
fn what_is_not_understood_is_left_alone_and_what_to_put_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), &["cursor", "--print"]);
    let path = folder.path().join("project/.mcp.json");
    fs::write(&path, "{ mcpServers = ").unwrap();
    let refused = install(folder.path(), &["claude-code", "--yes"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = text(&refused.stderr);
    assert!(said.contains("left `") && said.contains("\"mcpServers\""), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ mcpServers = ");
}

#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("dotfiles.toml");
    fs::write(&real, "model = \"x\"\n").unwrap();
    fs::create_dir(folder.path().join(".codex")).unwrap();
    let path = folder.path().join(".codex/config.toml");
    symlink(&real, &path).unwrap();
    let done = install(folder.path(), &["codex", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    let written = fs::read_to_string(&real).unwrap();
    assert!(written.starts_with("model = \"x\"\n") && written.contains("[mcp_servers.zeno]"), "{written}");
}
