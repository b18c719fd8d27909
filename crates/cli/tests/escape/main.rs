//! Ways out of a sandbox, tried in real ones made by the real program, as whoever runs the tests: CI runs them once as
//! root and once as an ordinary user.
//!
//! Every test asserts the refusal, and beside it that the attempt itself works: outside, on a process of one's own, or
//! with the protection lifted. Payloads are Python, because `ctypes` reaches every system call; they name what they
//! try and print the kernel's answer, one line each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod capabilities;
mod devices;
mod files;
mod harness;
mod information;
mod init;
mod masks;
mod namespaces;
mod proc_sys;
mod resources;
mod seccomp;
mod sockets;
mod terminal;
