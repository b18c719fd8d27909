//! What executes on the host without anyone asking for it. The list is data (`executes.json`), each entry with its reason.
//!
//! On it is what a program reads and runs by itself: on entering a folder, opening it in an editor, logging in, at a time
//! of day, at the next commit. Not on it is what runs when somebody builds, tests or starts the project: `package.json`'s
//! scripts, makefiles, `build.rs`, `conftest.py`. That is the code under promotion itself; whoever runs it has asked for it,
//! and asking each time would teach people to say yes without looking. What a coding agent only reads (`AGENTS.md`,
//! `CLAUDE.md`, rules) runs nothing by itself either. `zeno.yaml` is on it: its commands run on this machine whenever
//! somebody promotes, whatever they promote. `.gitattributes` and `.gitmodules` are not on it
//! either: they only name filters and addresses, and git takes commands from its own configuration alone, which is never
//! promoted. Where that configuration names a folder of hooks, or a file with more of it, the engine asks git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mask::glob;

/// The whole list, as in `executes.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutesList {
    /// Last names of a path, in whatever folder. `*` stands for any characters of one name, a final `**` for all below.
    pub anywhere: Vec<ExecutesRule>,
    /// Whole paths. `~` is the caller's home.
    pub paths: Vec<ExecutesRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutesRule {
    pub path: String,
    pub reason: String,
}

impl ExecutesList {
    /// The list that ships with zeno.
    #[must_use]
    pub fn built_in() -> Self {
        serde_json::from_str(include_str!("executes.json")).expect("executes.json is checked by a test")
    }

    /// Why an absolute path would execute; `None` if it would not.
    ///
    /// A symbolic link brings whatever is behind it, so one that stands for a folder on the way to a listed path counts too.
    #[must_use]
    pub fn reason(&self, path: &Path, is_link: bool, home: Option<&Path>) -> Option<&str> {
        let names = names(path);
        let anywhere = self.anywhere.iter().filter(|rule| {
            let rule = parts(&rule.path);
            (0..names.len()).any(|start| matches(&rule, &names[start..], is_link))
        });
        let whole = self.paths.iter().filter(|rule| {
            let mut start = Vec::new();
            let rest = match (rule.path.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => {
                    start = self::names(home);
                    rest
                }
                (Some(_), None) => return false,
                (None, _) => rule.path.trim_start_matches('/'),
            };
            names.strip_prefix(start.as_slice()).is_some_and(|names| matches(&parts(rest), names, is_link))
        });
        anywhere.chain(whole).next().map(|rule| rule.reason.as_str())
    }
}

fn matches(rule: &[&str], names: &[&OsStr], is_link: bool) -> bool {
    match (rule.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((&"**", _)), _) => true,
        (Some((part, rule)), Some((name, names))) => {
            glob(part.as_bytes(), name.as_bytes()) && matches(rule, names, is_link)
        }
        (Some(_), None) => is_link,
        (None, Some(_)) => false,
    }
}

fn parts(rule: &str) -> Vec<&str> {
    rule.split('/').collect()
}

fn names(path: &Path) -> Vec<&OsStr> {
    let components = path.components();
    components
        .filter_map(|component| if let Component::Normal(name) = component { Some(name) } else { None })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_list_reads_and_every_entry_has_a_reason() {
        let list = ExecutesList::built_in();
        assert!(list.anywhere.iter().chain(&list.paths).all(|rule| !rule.reason.is_empty()));
        assert!(list.paths.iter().all(|rule| rule.path.starts_with('/') || rule.path.starts_with("~/")));
        assert!(!list.anywhere.iter().any(|rule| rule.path.starts_with(['/', '~'])));
    }

    #[track_caller]
    fn check(path: &str, executes: bool) {
        let list = ExecutesList::built_in();
        let reason = list.reason(Path::new(path), false, Some(Path::new("/home/u")));
        assert_eq!(reason.is_some(), executes, "{path}: {reason:?}");
    }

    #[test]
    fn what_runs_by_itself() {
        check("/w/.envrc", true);
        check("/w/deep/down/.envrc", true);
        check("/w/.vscode/tasks.json", true);
        check("/w/.vscode/extensions.json", false);
        check("/w/.husky/pre-commit", true);
        check("/w/.husky/_/deeper", true);
        check("/w/package.json", false);
        check("/w/zeno.yaml", true);
        check("/w/deep/down/zeno.yaml", true);
        check("/w/.hg/hgrc", true);
        check("/w/.jj/repo/config.toml", true);
        check("/w/mise.local.toml", true);
        check("/w/.claude/hooks/check.sh", true);
        check("/w/CLAUDE.md", false);
        check("/w/tasks.json", false);
        check("/home/u/.bashrc", true);
        check("/home/v/.bashrc", false);
        check("/w/.bashrc", false);
        check("/home/u/.config/systemd/user/x.service", true);
        check("/etc/cron.d/x", true);
        check("/w/etc/cron.d/x", false);
    }

    #[test]
    fn a_link_stands_for_what_is_behind_it() {
        let list = ExecutesList::built_in();
        let of = |path: &str, is_link| list.reason(Path::new(path), is_link, None).is_some();
        assert_eq!((of("/w/.vscode", true), of("/w/.vscode", false)), (true, false));
        assert_eq!((of("/etc/cron.d", true), of("/w/src", true)), (true, false));
    }
}
