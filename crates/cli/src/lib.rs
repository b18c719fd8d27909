//! The command line of zeno: arguments, calls of the API, rendering, exit codes.
//!
//! Never talks to the engine or the store, only to the daemon's API; the daemon itself is merely started
//! from here. The only crate that prints and exits.

mod actor;
mod api;
mod args;
mod caller;
mod dispatch;
mod failure;
mod hooks;
mod invocation;
mod keys;
mod output;
mod progress;
mod prompt;
mod render;
mod request;
mod session;
mod signal;
mod terminal;
mod verbs;

pub use dispatch::main;

/// The reference of all verbs and flags, as Markdown.
#[must_use]
pub fn reference_markdown() -> String {
    render::reference::reference(<args::Cli as clap::CommandFactory>::command())
}
