//! Which system calls a sandbox may make: an allow-list, built as a classic BPF program.
//!
//! Never kills: what is refused gets the errno an older or stricter kernel would give, so that programs fall
//! back or report it. Foreign calling conventions (x32, i386) get ENOSYS as a whole, because a list by number
//! means something else there. Never looks behind a pointer: a filter cannot, which is why `clone3` is
//! hidden (libc then uses `clone`, whose flags are in a register).

use libc::sock_filter;

mod calls;
mod program;
mod rules;
mod sys;
#[cfg(test)]
mod tests;

pub use sys::install;

/// What a sandbox's filter depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The sandbox may make namespaces of its own and mount in them (`--nested`): what Chromium's own
    /// sandbox and container tools need.
    pub nested: bool,
}

/// Builds the filter. Do it once, before forking: [`install`] then allocates nothing.
#[must_use]
pub fn program(policy: Policy) -> Vec<sock_filter> {
    program::assemble(&rules::rules(policy))
}
