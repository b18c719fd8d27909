//! `env`.

use clap::Args;

use super::which::Which;

/// Show what a sandbox was given: variables, names, whom it trusts
///
/// The variables in a form that a shell reads; all else beside them as comments. Of a secret there is only its placeholder.
/// `e2b` is no sandbox: it shows the variables that lead E2B's SDKs to this daemon.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno env web
  eval \"$(zeno env web)\"
  eval \"$(zeno env e2b)\"
  zeno env web --json")]
pub(crate) struct Env {
    /// Id or name, or `e2b`
    pub(crate) sandbox: Which,
}
