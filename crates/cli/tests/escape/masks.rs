//! Secrets: hidden where they are and where links lead to them, also if they appear later; shown only when named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::harness::{Home, Said, said};

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

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments).current_dir(folder);
    let said = said(&mut git);
    assert_eq!(said.code, Some(0), "git {arguments:?}: {said:?}");
}

/// A shell line in a throwaway sandbox that has this folder frozen, and stands in it.
fn frozen(home: &Home, folder: &Path, options: &[&str], line: &str) -> Said {
    let folder = folder.to_str().unwrap();
    home.say(&[&["run", "--workspace", folder, "-w", folder], options, &["--", "sh", "-c", line]].concat())
}

/// Every file that holds a secret and can be read.
const SEARCH: &str = "grep -rs SENTINEL . | sort; cat .config/harmless";

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
    git(&workspace, &["init", "-q"]);
    git(&workspace, &["add", ".env.example", "code"]);
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

#[test]
fn a_workspace_that_is_the_home_holds_no_secret_tracked_or_not() {
    let home = Home::new();
    for secret in SECRETS {
        put(home.seen(), secret, "SENTINEL");
    }
    put(home.seen(), ".config/harmless", "shown");
    let before_git = frozen(&home, home.seen(), &[], SEARCH);
    assert_eq!(before_git.out, "shown", "{before_git:?}");
    git(home.seen(), &["init", "-q"]);
    git(home.seen(), &["add", "--all"]);
    git(home.seen(), &["commit", "-qm", "all of it"]);
    let tracked = frozen(&home, home.seen(), &[], SEARCH);
    assert_eq!(tracked.out, "shown", "{tracked:?}");
    // The control: what is named is shown, in each of the ways to name it, and the others still are not.
    let absolute = home.seen().join(".ssh").display().to_string();
    for name in ["~/.ssh", ".ssh", &absolute] {
        let lifted = frozen(&home, home.seen(), &["--unmask", name], SEARCH);
        assert_eq!(lifted.out, "./.ssh/id_ed25519:SENTINEL\nshown", "{name}: {lifted:?}");
    }
    // Whoever changes what is there has something of their own, and the secret is not below it.
    let own = "mkdir .ssh; echo mine > .ssh/id_ed25519; mv .config x && ls -A x && rm -r x && mkdir .config && ls -A .config";
    let changed = frozen(&home, home.seen(), &[], &format!("{own}; grep -rs SENTINEL .; cat .ssh/*"));
    assert_eq!(changed.out, "harmless\nmine\n", "{changed:?}");
}

#[test]
fn a_configuration_that_is_a_repository_holds_no_secret() {
    let home = Home::new();
    let config = home.seen().join(".config");
    put(&config, "gh/hosts.yml", "SENTINEL");
    put(&config, "harmless", "shown");
    git(&config, &["init", "-q"]);
    git(&config, &["add", "--all"]);
    git(&config, &["commit", "-qm", "all of it"]);
    let search = "cat harmless; cat gh/hosts.yml";
    let said = frozen(&home, &config, &[], search);
    assert_eq!((said.code, said.out.as_str()), (Some(1), "shown"), "{said:?}");
    assert_eq!(frozen(&home, &config, &["--unmask", "~/.config/gh"], search).out, "shownSENTINEL");
    // The same as a linked worktree, whose repository lies elsewhere.
    fs::rename(&config, home.seen().join("dotfiles")).unwrap();
    git(&home.seen().join("dotfiles"), &["worktree", "add", "-q", "-b", "linked", "../.config"]);
    let said = frozen(&home, &config, &[], &format!("{search}; git log --format=%s; git status --short"));
    assert_eq!(said.out, "shownall of it\n D gh/hosts.yml\n", "{said:?}");
}

#[test]
fn a_secret_in_a_live_folder_of_the_workspace_is_hidden_also_if_it_is_yet_to_come() {
    let home = Home::new();
    put(home.seen(), ".config/gh/hosts.yml", "SENTINEL");
    put(home.seen(), ".config/harmless", "shown");
    put(home.seen(), ".gitignore", "/.config\n/.docker\n");
    put(home.seen(), ".docker/harmless", "shown");
    git(home.seen(), &["init", "-q"]);
    let folder = home.seen().to_str().unwrap();
    let sandbox = home.must(&["create", "--workspace", folder]).trim().to_owned();
    put(home.seen(), ".docker/config.json", "SENTINEL");
    put(home.seen(), ".config/gcloud/credentials.db", "SENTINEL");
    let search = format!("cd {folder}; {SEARCH}; cat .docker/harmless; rm -r .config .docker; ls -A .");
    let said = home.exec(&sandbox, &["sh", "-c", &search]);
    assert_eq!(said.out, "shownshown.git\n.gitignore\n", "{said:?}");
    home.must(&["destroy", &sandbox]);
    let said = frozen(&home, home.seen(), &["--unmask", "~/.config/gh"], SEARCH);
    assert_eq!(said.out, "./.config/gh/hosts.yml:SENTINEL\nshown", "{said:?}");
}

#[test]
fn status_tells_what_a_workspace_hides_and_nothing_else() {
    let home = Home::new();
    for secret in SECRETS {
        put(home.seen(), secret, "SENTINEL");
    }
    let folder = home.seen().to_str().unwrap();
    let sandbox = home.must(&["create", "--workspace", folder, "--unmask", "~/.aws"]).trim().to_owned();
    let status: serde_json::Value =
        serde_json::from_str(&home.must(&["status", &sandbox, "--json"])).unwrap();
    let hidden: Vec<&Path> = status["masked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|masked| masked["path"].as_str().unwrap().as_ref())
        .collect();
    for secret in SECRETS.map(|secret| home.seen().join(secret)) {
        let is_told = hidden.iter().any(|path| secret.starts_with(path));
        let is_seen = home.exec(&sandbox, &["test", "-e", secret.to_str().unwrap()]).code == Some(0);
        let is_lifted = secret.starts_with(home.seen().join(".aws"));
        assert_eq!((is_told, is_seen), (!is_lifted, is_lifted), "{} {hidden:?}", secret.display());
    }
    home.must(&["destroy", &sandbox]);
}

#[test]
fn secrets_of_a_home_behind_a_link_or_where_all_starts_empty_are_hidden_in_the_workspace() {
    let home = Home::new();
    let in_tmp = tempfile::tempdir_in("/tmp").unwrap();
    let (real, linked) = (home.seen().join("real"), home.seen().join("linked"));
    symlink("real", &linked).unwrap();
    for (named, folder) in [(linked.as_path(), real.as_path()), (in_tmp.path(), in_tmp.path())] {
        put(folder, ".ssh/id_ed25519", "SENTINEL");
        put(folder, ".config/harmless", "shown");
        let run = |options: &[&str]| {
            let folder = folder.to_str().unwrap();
            let run = [&["run", "--workspace", folder, "-w", folder], options, &["--", "sh", "-c", SEARCH]];
            said(home.zeno(&run.concat()).env("HOME", named))
        };
        let hidden = run(&[]);
        assert_eq!((hidden.code, hidden.out.as_str()), (Some(0), "shown"), "{hidden:?}");
        let lifted = run(&["--unmask", "~/.ssh"]);
        assert_eq!(lifted.out, "./.ssh/id_ed25519:SENTINEL\nshown", "{lifted:?}");
    }
}

#[test]
fn a_workspace_that_is_itself_masked_is_refused_until_it_is_named() {
    let home = Home::new();
    put(home.seen(), ".password-store/mail", "SENTINEL");
    let store = home.seen().join(".password-store");
    let refused = frozen(&home, &store, &[], "cat mail");
    assert_eq!((refused.code, refused.out.as_str()), (Some(125), ""), "{refused:?}");
    assert!(refused.err.contains(&format!("--unmask {}", store.display())), "{refused:?}");
    let named = frozen(&home, &store, &["--unmask", "~/.password-store"], "cat mail");
    assert_eq!((named.code, named.out.as_str()), (Some(0), "SENTINEL"), "{named:?}");
}

#[test]
fn other_stores_of_zeno_are_hidden() {
    let home = Home::new();
    put(home.seen(), ".local/share/zeno/sandboxes/sb/upper/0/secret", "SENTINEL");
    put(home.seen(), ".local/share/harmless", "shown");
    let search = format!(
        "cd {}; cat .local/share/harmless; grep -rs SENTINEL .; ls /var/lib/zeno",
        home.seen().display()
    );
    let said = home.run(&[], &["sh", "-c", &search]);
    assert_eq!(said.out, "shown", "{said:?}");
}
