//! Repositories to work in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::Home;

/// A repository with one commit, and a sandbox `box` in it.
pub(crate) struct Yard {
    pub(crate) path: PathBuf,
}

impl Yard {
    /// The script makes what is committed.
    pub(crate) fn new(home: &Home, script: &str) -> Self {
        let path = home.yard().join("repository");
        fs::create_dir_all(&path).unwrap();
        let yard = Self { path };
        yard.script("git init -q; git config user.name a; git config user.email a@b");
        yard.script(script);
        yard.script("git add -A; git commit -qm first");
        home.create_in("box", &yard.path);
        yard
    }

    /// Runs a script in the real repository, and returns what it printed.
    #[track_caller]
    pub(crate) fn script(&self, line: &str) -> String {
        let output = Command::new("sh").args(["-ec", line]).current_dir(&self.path).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Git with nobody's settings but the repository's own.
#[track_caller]
pub(crate) fn git(place: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["--no-optional-locks", "-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(place)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.invalid")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.invalid")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
