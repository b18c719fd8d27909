use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use model::Code;
use tempfile::TempDir;
use tokio::net::UnixStream;

use super::super::wire::Missing;
use super::*;

/// What a command says, and the daemon's end of it.
fn spoken() -> (FrameWriter<UnixStream>, Lines) {
    let (init, daemon) = UnixStream::pair().unwrap();
    let (read, _write) = daemon.into_split();
    (FrameWriter::new(init), Lines::new(read, Hindsight::default()))
}

fn frame<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

#[tokio::test]
async fn lines_come_whole_however_they_are_cut() {
    let (mut init, mut lines) = spoken();
    let exec = Exec { id: ExecId(7), argv: Vec::new(), pid: 1, tty: false, outcome: None };
    init.send(FrameKind::Started, &frame(&exec)).await.unwrap();
    assert_eq!(lines.started().await.unwrap(), exec);
    for piece in ["on", "e\ntwo\n\nth", "ree\nrest"] {
        init.send(FrameKind::Stdout, piece.as_bytes()).await.unwrap();
    }
    for line in ["one", "two", "", "three"] {
        assert_eq!(lines.next().await.unwrap(), line.as_bytes());
    }
    init.send(FrameKind::Stderr, b"no such thing\n").await.unwrap();
    init.send(FrameKind::Ended, &frame(&Outcome::Exited { code: 3 })).await.unwrap();
    let ended = lines.next().await.unwrap_err();
    assert!(matches!(&ended, Ended::Process { how } if how == "exit status 3: no such thing"), "{ended}");
}

#[tokio::test]
async fn what_is_no_bridge_is_not_listened_to_for_ever() {
    let (mut init, mut lines) = spoken();
    let endless =
        tokio::spawn(async move { while init.send(FrameKind::Stdout, &[b'x'; 1 << 20]).await.is_ok() {} });
    assert!(matches!(lines.next().await, Err(Ended::TooLong)));
    drop(lines);
    endless.await.unwrap();

    let (mut init, mut lines) = spoken();
    init.send(FrameKind::Answer, b"{}").await.unwrap();
    assert!(matches!(lines.next().await, Err(Ended::Violation(_))));
    init.send(FrameKind::Problem, &frame(&Problem::new(Code::NotReady, "no"))).await.unwrap();
    assert!(matches!(lines.started().await, Err(Ended::Refused(_))));
    drop(init);
    assert!(matches!(lines.next().await, Err(Ended::Sandbox { .. })));
}

#[test]
fn a_bridge_is_known_among_commands() {
    let request = request("id", &Settings { cwd: Some(String::new()), ..Settings::default() });
    assert_eq!(request.argv.get(MARKED), Some(&Text::from(MARK)));
    assert_eq!((request.cwd, request.stdin), (None, true));
}

/// A Python that says of itself what it is, and whether it has what a kernel takes.
fn python(path: &Path, has_all: bool) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\ncase $2 in *find_spec*) echo \"$0|false\"; exec {has_all} ;; *) echo \"bridge in $0\" ;; esac\n"
    );
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the search says in a sandbox whose own Pythons are in `bin`.
fn found(home: &Path, venv: Option<&Path>) -> String {
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    let mut search = Command::new("/bin/sh");
    search.args(["-c", FIND]).env_clear().env("PATH", path).env("HOME", home);
    search.envs(venv.map(|venv| ("VIRTUAL_ENV", venv)));
    let output = search.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_first_python_that_has_a_kernel_is_taken() {
    let folder = TempDir::new().unwrap();
    let (home, bin) = (folder.path(), folder.path().join("bin"));
    python(&bin.join("python3"), false);
    python(&bin.join("python3.99"), true);
    let other = format!("bridge in {}", bin.join("python3.99").display());
    assert_eq!(found(home, None), other);
    python(&home.join(".venv/bin/python"), true);
    assert_eq!(found(home, None), format!("bridge in {}", home.join(".venv/bin/python").display()));
    let venv = home.join("env");
    python(&venv.join("bin/python"), true);
    assert_eq!(found(home, Some(&venv)), format!("bridge in {}", venv.join("bin/python").display()));
    python(&venv.join("bin/python"), false);
    python(&bin.join("python3"), true);
    assert_eq!(found(home, Some(&venv)), format!("bridge in {}", bin.join("python3").display()));
}

#[test]
fn a_python_that_has_no_kernel_is_named() {
    let folder = TempDir::new().unwrap();
    let python3 = folder.path().join("bin/python3");
    python(&python3, false);
    let said = found(folder.path(), None);
    // The machine's own may have one.
    if !said.starts_with('{') {
        return;
    }
    let First::Missing(Missing { python, managed, owner, user }) = serde_json::from_str(&said).unwrap()
    else {
        panic!("{said}")
    };
    assert_eq!((python.as_str(), managed), (python3.to_str().unwrap(), false));
    assert_eq!(owner, user);
}
