//! zeno on Linux: the frozen copy of a workspace, the view of the machine, the namespaces, the first process.
//!
//! Synchronous. The only crate with `unsafe`. Never prints, never knows HTTP, SQLite or tokio, and never
//! resolves a path inside a sandbox except beneath its root.
#![expect(unsafe_code, reason = "this crate talks to the kernel; raw calls live in `sys`")]

pub mod capture;
pub mod cgroup;
pub mod machine;
pub mod seccomp;
mod sys;
