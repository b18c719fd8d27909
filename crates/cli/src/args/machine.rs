//! Verbs about zeno and this machine: `doctor`, `demo`, `completions`, `openapi`, `version`, `reference`.

use clap::Args;
use clap_complete::Shell;

/// Say what this machine can do for sandboxes
///
/// Exits with 1 when no sandbox can be made here.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno doctor
  zeno doctor --json")]
pub(crate) struct Doctor {}

/// Show what zeno does, with real sandboxes on this machine
///
/// Works in a folder of its own and removes all it made. The times shown are measured while you watch.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Demo {}

/// Print the completions of a shell
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno completions bash > ~/.local/share/bash-completion/completions/zeno
  zeno completions zsh > \"${fpath[1]}/_zeno\"
  zeno completions fish > ~/.config/fish/completions/zeno.fish")]
pub(crate) struct Completions {
    /// For which shell
    pub(crate) shell: Shell,
}

/// Print the OpenAPI document of the HTTP API
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno openapi > openapi.json")]
pub(crate) struct Openapi {}

/// Print the version
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Version {}

/// Print the reference of all verbs as Markdown
#[derive(Debug, PartialEq, Eq, Args)]
#[command(hide = true)]
pub(crate) struct Reference {}
