//! The `zeno` program against real sandboxes on this kernel, as root and as an ordinary user: the same tests.
//! Every test has a daemon of its own, and leaves nothing of it behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::print_stderr, reason = "a test that failed shows what the daemon said, in its helpers too")]

mod api;
mod bad_input;
mod commits;
mod daemon;
mod diff;
mod doctor;
mod exec;
mod files;
mod freeze;
mod home;
mod http;
mod killed;
mod lifecycle;
mod limits;
mod promote;
mod race;
mod refresh;
mod repository;
mod run;
mod snapshot;
mod stages;
mod stock;
mod terminal;
mod traces;
mod trial;
mod verify;
mod wait;
mod yard;
