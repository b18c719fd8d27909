//! The `zeno` program against real sandboxes on this kernel, as root and as an ordinary user: the same tests.
//! Every test has a daemon of its own, and leaves nothing of it behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::print_stderr, reason = "a test that failed shows what the daemon said, in its helpers too")]

mod account;
mod actor;
mod api;
mod attach;
mod bad_input;
mod commits;
mod copies;
mod crowd;
mod daemon;
mod demo;
mod diff;
mod doctor;
mod e2b;
mod exec;
mod files;
mod fixes;
mod freeze;
mod gates;
mod home;
mod hostile;
mod http;
mod killed;
mod lifecycle;
mod limits;
mod masked;
mod mcp;
mod net;
mod power;
mod promote;
mod race;
mod random;
mod refresh;
mod repository;
mod run;
mod snapshot;
mod stages;
mod stock;
mod terminal;
mod told;
mod traces;
mod trial;
mod unable;
mod verify;
mod wait;
mod yard;
