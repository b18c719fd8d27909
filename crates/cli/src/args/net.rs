//! What a sandbox may reach, and what it tried to: `net`, `requests`.

use clap::{Args, Subcommand};
use model::net::SecretFor;

use super::which::Which;

/// Show what a sandbox may reach, or change it while it runs
///
/// Rules are names with or without a port (`github.com`, `*.example.org:443`), addresses (`10.0.0.0/8`), `host:PORT`
/// for a service of this machine, `NAME.zeno:PORT` for another sandbox of the same workspace (its own loopback; the other needs no
/// rule, and gets no way back by it), or `registries` (`registries/npm`) for where packages come from. With a path
/// (`api.example.org/v1/*`), methods (`GET|HEAD api.example.org`) or `+inspect` its connections are opened and each request is
/// decided about. The last one said comes first. Connections that are not
/// allowed any more are cut.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno net web
  zeno net web --allow github.com --allow host:5432
  zeno net web --deny '*.example.org'")]
pub(crate) struct Net {
    /// Id or name
    pub(crate) sandbox: Which,
    /// Allow this (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny this (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Give the value of this secret again, from your environment, for these hosts (repeatable)
    #[arg(long = "secret", value_name = "NAME@HOST,...")]
    pub(crate) secrets: Vec<SecretFor>,
}

/// List what sandboxes tried to reach, and what became of it
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:
  zeno requests
  zeno requests -f --denied
  zeno requests web --host github.com --json
  zeno requests show 17"
)]
pub(crate) struct Requests {
    #[command(subcommand)]
    pub(crate) action: Option<RequestsAction>,
    /// Only of this sandbox
    pub(crate) sandbox: Option<Which>,
    /// Go on as more is tried
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what was denied
    #[arg(long)]
    pub(crate) denied: bool,
    /// Only to this name, to one below it, or to this address
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum RequestsAction {
    /// Show all that is known of one
    Show {
        /// Its number
        id: u64,
    },
}
