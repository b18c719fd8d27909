//! `daemon` and what can be done with it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Look at, start and stop the daemon
///
/// Every verb starts it when there is none; sandboxes live on when it stops.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno daemon status
  zeno daemon --listen 127.0.0.1:7070")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Daemon {
    /// Have it reached over TCP, too, on loopback; started if there is none, and there again after it ends
    #[arg(long, value_name = "ADDR", required = true)]
    pub(crate) listen: Option<SocketAddr>,
    #[command(subcommand)]
    pub(crate) action: Option<DaemonAction>,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum DaemonAction {
    /// Say whether it runs
    Status,
    /// Start it in the background
    Start,
    /// Stop it; sandboxes live on
    Stop,
    /// Be the daemon, in the foreground
    Run(DaemonRun),
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct DaemonRun {
    /// Also listen on TCP; clients need the token in ZENO_HOME
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Ask this name server for what sandboxes reach, instead of the machine's own
    #[arg(long, value_name = "ADDR")]
    pub(crate) resolver: Option<SocketAddr>,
    /// Trust the certificate authorities in this file, too, where connections are inspected
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: Option<PathBuf>,
    /// Let whoever has the token promote over MCP and HTTP, where nobody can be asked
    #[arg(long)]
    pub(crate) allow_promote: bool,
}
