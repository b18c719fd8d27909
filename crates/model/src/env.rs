//! The environment, read once. Everything zeno takes from it stands here.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::exec::Variable;

/// What zeno itself reads from the environment. The caller's whole environment travels separately, as data.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `ZENO_HOME`: where all state lives. One daemon per home.
    pub zeno_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub xdg_data_home: Option<PathBuf>,
    /// `ZENO_LOG`: filter of the daemon's log, for example `debug` or `control=trace`.
    pub log: Option<String>,
    /// `ZENO_TOKEN`: bearer token for a daemon on TCP.
    pub token: Option<String>,
    /// `SHELL`: what `zeno shell` starts.
    pub shell: Option<OsString>,
    /// `NO_COLOR`: any value turns colour off.
    pub no_color: bool,
    /// `CI`: automation calls, and nobody is at the terminal.
    pub ci: bool,
    /// `ZENO_ACTOR`: who asks, instead of what the surroundings look like: `adm`, `agt` or `atm`.
    pub actor: Option<String>,
    /// One of [`AGENTS`] is set: a coding agent calls.
    pub agent: bool,
}

/// Variables that coding agents set for what they run.
pub const AGENTS: &[&str] = &[
    "AI_AGENT",
    "AUGMENT_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "GOOSE_TERMINAL",
    "OPENCODE",
];

impl Environment {
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn read() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let is_on = |name: &str| {
            std::env::var_os(name).is_some_and(|value| !["", "0", "false"].iter().any(|off| value == *off))
        };
        Self {
            zeno_home: path("ZENO_HOME"),
            home: path("HOME"),
            xdg_data_home: path("XDG_DATA_HOME"),
            log: std::env::var("ZENO_LOG").ok(),
            token: std::env::var("ZENO_TOKEN").ok(),
            shell: std::env::var_os("SHELL").filter(|value| !value.is_empty()),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            ci: is_on("CI"),
            actor: std::env::var("ZENO_ACTOR").ok().filter(|value| !value.is_empty()),
            agent: AGENTS.iter().any(|name| is_on(name)),
        }
    }

    /// Where state lives: `ZENO_HOME`, else `/var/lib/zeno` for root, else the user's data folder.
    #[must_use]
    pub fn state_dir(&self, is_root: bool) -> Option<PathBuf> {
        if let Some(home) = &self.zeno_home {
            return Some(home.clone());
        }
        if is_root {
            return Some(PathBuf::from("/var/lib/zeno"));
        }
        let data = self.xdg_data_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/share")))?;
        Some(data.join("zeno"))
    }
}

/// The caller's whole environment, as data for a sandbox. What it means is none of zeno's business.
#[must_use]
pub fn variables() -> Vec<Variable> {
    std::env::vars_os().map(|(name, value)| Variable { name: name.into(), value: value.into() }).collect()
}
