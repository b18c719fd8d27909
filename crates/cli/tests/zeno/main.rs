//! The `zeno` program itself, against a daemon whose every word the test decides: what is shown here is how
//! the program treats its terminal, its pipes and its signals.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
mod cp;
mod daemon;
mod mcp;
mod program;
mod session;
mod terminal;
