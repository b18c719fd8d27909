//! The launcher: a single-threaded process that makes namespaces and mounts for the daemon.
//!
//! A threaded process can neither enter nor make user namespaces cheaply, so the daemon keeps this helper. It is started
//! from the daemon's own (sealed) executable with its socket as standard input, and ends when that socket closes.
//! Init processes are its forks: they share its pages and need no exec.
//!
//! It reads no sandbox's files and talks to nobody but the daemon.

mod base;
mod devices;
mod disk;
mod handle;
mod hide;
mod launch;
mod overlay;
mod rights;
mod stage;
mod wire;

pub use handle::{Launched, Launcher, LauncherError, Order};
pub use launch::main;
pub use rights::Rights;
pub(crate) use wire::PACKET;
pub use wire::{Given, LaunchError};

/// The hidden first argument with which the executable becomes the launcher.
pub const VERB: &str = "launcher";
