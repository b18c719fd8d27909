//! What fulfils a request for a sandbox. One module per backend; today `native`.
//!
//! Never writes the store and never decides policy: it does what it is told and reports what it did.

pub mod native;
