//! `mcp`: sandboxes as tools of an agent's client.

use clap::{Args, Subcommand, ValueEnum};

/// Serve sandboxes as tools over MCP, on standard input and output
///
/// An agent's client starts it; `zeno mcp install` tells the client how. Tools work in the folder it is started in, unless a call
/// names another. A person is asked before anything is promoted.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "Examples:
  zeno mcp install claude-code
  zeno mcp install codex --print
  zeno mcp")]
pub(crate) struct Mcp {
    /// Agree beforehand to all that is promoted, so that nobody is asked
    #[arg(long)]
    pub(crate) allow_promote: bool,
    #[command(subcommand)]
    pub(crate) action: Option<McpAction>,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum McpAction {
    Install(McpInstall),
}

/// Write zeno into the configuration of a client
///
/// Shows the change and asks; a copy of the file as it was stays beside it.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct McpInstall {
    /// Whose configuration it is
    pub(crate) client: McpClient,
    /// For this project or for you everywhere; the project if absent, but you for codex
    #[arg(long)]
    pub(crate) scope: Option<McpScope>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only print what would be written
    #[arg(long, conflicts_with = "yes")]
    pub(crate) print: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    ClaudeCode,
    Codex,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpScope {
    Project,
    User,
}
