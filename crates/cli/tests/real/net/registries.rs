//! Package managers, unmodified, in sandboxes that may reach registries and nothing else. The registries are those that this
//! machine is configured for, whatever they are: no test names one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::record;
use crate::home::{Home, Ran, finish, is_root};

/// The caller's own environment and home: they are what the machine is configured by.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env_clear().envs(std::env::vars_os()).env("ZENO_HOME", home.path());
    command
}

/// A shell line in a throwaway that may reach registries, in a folder of the yard, which is its workspace.
fn install(home: &Home, folder: &Path, line: &str) -> Ran {
    let folder_text = folder.to_str().unwrap();
    let words = ["run", "--workspace", folder_text, "--net", "allow:registries", "--", "sh", "-c", line];
    let mut command = command(home, &words);
    let ran = finish(command.current_dir(folder).spawn().unwrap(), b"");
    home.daemon();
    ran
}

#[track_caller]
fn assert_installed(home: &Home, ran: &Ran, ecosystem: &str) {
    assert_eq!(ran.code, 0, "{ran}\n{}", record(home, &[]));
    let rule = format!(": registries/{ecosystem}/");
    let allowed = record(home, &[]);
    assert!(allowed.lines().any(|line| line.starts_with("allow tcp") && line.contains(&rule)), "{allowed}");
}

fn folder(home: &Home, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = home.yard().join(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn cargo_fetches() {
    let home = Home::new();
    let manifest =
        "[package]\nname = \"tiny\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\nfnv = \"1\"\n";
    let folder = folder(&home, "crate", &[("Cargo.toml", manifest), ("src/lib.rs", "")]);
    // The real cache is hidden behind an empty one; what configures cargo is not.
    let line = "set -e; real=${CARGO_HOME:-$HOME/.cargo}; export CARGO_HOME=/tmp/cargo; mkdir $CARGO_HOME\n\
                for file in config.toml config; do test ! -e $real/$file || cp $real/$file $CARGO_HOME; done\n\
                cargo fetch; ls $CARGO_HOME/registry/cache/*/";
    let ran = install(&home, &folder, line);
    assert_installed(&home, &ran, "cargo");
    assert!(ran.out().contains("itoa-1") && ran.out().contains("fnv-1"), "{ran}");
}

#[test]
fn npm_installs_what_a_lockfile_says() {
    let home = Home::new();
    let manifest = r#"{"name":"tiny","version":"1.0.0","dependencies":{"isarray":"2.0.5"}}"#;
    let folder = folder(&home, "npm", &[("package.json", manifest)]);
    let ran = install(
        &home,
        &folder,
        "set -e; export npm_config_cache=/tmp/npm npm_config_audit=false npm_config_update_notifier=false\n\
         npm install --package-lock-only; test ! -e node_modules; npm ci; cat node_modules/isarray/package.json",
    );
    assert_installed(&home, &ran, "npm");
    assert!(ran.out().contains("\"2.0.5\""), "{ran}");
}

#[test]
fn pip_installs() {
    let home = Home::new();
    let folder = folder(&home, "pip", &[("README", "")]);
    let line = "pip3 install --no-cache-dir --no-deps --target /tmp/packages iniconfig && ls /tmp/packages";
    let ran = install(&home, &folder, line);
    assert_installed(&home, &ran, "pip");
    assert!(ran.out().contains("iniconfig"), "{ran}");
}

#[test]
fn apt_updates_and_downloads_as_root_and_is_refused_otherwise() {
    let home = Home::new();
    let folder = folder(&home, "apt", &[("README", "")]);
    // Only the first source: others of this machine may be out of reach, with or without a sandbox.
    let line = "mkdir /tmp/apt; cd /tmp/apt; options=\"-o Dir::Etc::SourceParts=/tmp/apt/parts -o Dir::Etc::SourceList=/dev/null\"\n\
                mkdir parts; for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do\n\
                test ! -e $file || cp $file parts; done\n\
                apt-get $options update && apt-get $options download hostname && ls /tmp/apt";
    let ran = install(&home, &folder, line);
    if is_root() {
        assert_installed(&home, &ran, "apt");
        assert!(ran.out().contains("hostname_"), "{ran}");
    } else {
        assert_ne!(ran.code, 0, "{ran}");
        let said = ran.to_string();
        assert!(said.contains("Permission denied") || said.contains("are you root"), "{said}");
    }
}

#[test]
fn nothing_but_registries_is_reached_and_the_rules_say_whose_they_are() {
    let home = Home::new();
    let folder = folder(&home, "none", &[("README", "")]);
    let probe = "python3 -c \"import socket\ntry: socket.create_connection(('not-a-registry.test', 443))\n\
                 except OSError as error: print(type(error).__name__)\"";
    let ran = install(&home, &folder, probe);
    assert_eq!(ran.out(), "gaierror\n", "{ran}");
    assert!(record(&home, &[]).contains("deny dns not-a-registry.test null: nothing allows it"));
    home.create("web", &["--net", "allow:registries/npm"]);
    let shown = home.ok(&["net", "web"]);
    assert!(
        shown.lines().all(|line| line.contains("registries/npm/") || line == "deny   everything else"),
        "{shown}"
    );
    home.ok(&["net", "web", "--allow", "registries/go"]);
    assert!(home.ok(&["net", "web"]).contains("allow  registries/go/"));
    let bad = home.zeno(&["net", "web", "--allow", "registries/gem"]);
    assert_eq!(bad.code, 2, "{bad}");
}

/// What npm is configured for in a file that is hidden from it reaches it all the same; the token in that file does not.
#[test]
fn a_masked_setting_is_handed_on_without_its_secret() {
    let home = Home::new();
    let npmrc = "registry=http://me:hunter2@127.0.0.1:9/npm/\n//127.0.0.1:9/npm/:_authToken=hunter2\n";
    fs::write(home.yard().join(".npmrc"), npmrc).unwrap();
    home.create("web", &["--net", "allow:registries/npm"]);
    let ran = home.exec("web", "env; cat ~/.npmrc");
    assert!(ran.out().contains("npm_config_registry=http://host:9/npm/\n"), "{ran}");
    assert!(!ran.to_string().contains("hunter2"), "{ran}");
    assert!(home.ok(&["net", "web"]).contains("registries/npm/host:9"));
}
