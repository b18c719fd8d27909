//! Secrets: hidden where they are and where links lead to them, also if they appear later; shown only when named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::harness::Home;

const SECRETS: [&str; 9] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".bash_history",
    ".gnupg/private-keys-v1.d/key",
];

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn credentials_and_histories_are_hidden() {
    let home = Home::new();
    for secret in SECRETS {
        put(home.seen(), secret, "SENTINEL");
    }
    put(home.seen(), ".config/harmless", "shown");
    let search =
        format!("grep -rs SENTINEL {0} /proc/self/root{0}; cat {0}/.config/harmless", home.seen().display());
    let said = home.run(&[], &["sh", "-c", &search]);
    assert_eq!(said.out, "shown", "{said:?}");
    for secret in SECRETS {
        let path = home.seen().join(secret);
        assert_eq!(home.run(&[], &["cat", path.to_str().unwrap()]).code, Some(1), "{secret}");
    }
    // The control: one that is named is shown, and the others still are not.
    let said = home.run(&["--unmask", "~/.ssh"], &["sh", "-c", &search]);
    assert_eq!(said.out.matches("SENTINEL").count(), 2, "{said:?}");
    assert!(said.out.contains(".ssh/id_ed25519"), "{said:?}");
}

#[test]
fn a_secret_behind_a_link_or_yet_to_come_is_hidden() {
    let home = Home::new();
    put(home.seen(), "dotfiles/aws/credentials", "SENTINEL");
    symlink("dotfiles/aws", home.seen().join(".aws")).unwrap();
    let sandbox = home.create(&[]);
    put(home.seen(), ".ssh/id_late", "SENTINEL");
    put(home.seen(), ".docker/config.json", "SENTINEL");
    let search = format!("grep -rs SENTINEL {}; true", home.seen().display());
    let said = home.exec(&sandbox, &["sh", "-c", &search]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    home.must(&["destroy", &sandbox]);
}

#[test]
fn in_the_workspace_untracked_secrets_are_hidden_and_tracked_examples_are_not() {
    let home = Home::new();
    let workspace = home.seen().join("project");
    put(&workspace, ".env", "SENTINEL");
    put(&workspace, "web/.env.local", "SENTINEL");
    put(&workspace, ".dev.vars", "SENTINEL");
    put(&workspace, ".env.example", "EXAMPLE");
    put(&workspace, "code", "CODE");
    for arguments in [&["init", "-q"][..], &["add", ".env.example", "code"]] {
        let git = Command::new("git").args(arguments).current_dir(&workspace).status().unwrap();
        assert!(git.success());
    }
    let folder = workspace.to_str().unwrap();
    let search = "cat .env.example code; grep -rs SENTINEL .; true";
    let run = |options: &[&str]| {
        home.say(
            &[&["run", "--workspace", folder, "-w", folder], options, &["--", "sh", "-c", search]].concat(),
        )
    };
    let said = run(&[]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "EXAMPLECODE"), "{said:?}");
    let said = run(&["--unmask", ".env"]);
    assert_eq!(said.out, "EXAMPLECODE./.env:SENTINEL\n", "{said:?}");
}
