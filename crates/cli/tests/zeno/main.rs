//! The `zeno` program itself, against a daemon whose every word the test decides: what is shown here is how
//! the program treats its terminal, its pipes and its signals.

mod answers;
mod daemon;
mod program;
mod session;
mod terminal;
