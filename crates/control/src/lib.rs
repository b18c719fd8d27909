//! The store, the lifecycle, and the verbs.
//!
//! Every sandbox has a record here, and every change of its state goes through one function. Never knows HTTP,
//! never prints.

mod lifecycle;
pub mod store;

pub use lifecycle::lifecycle_markdown;
