//! The store, the lifecycle, and the verbs.
//!
//! Every sandbox has a record here, and every change of its state goes through one function. Never knows HTTP,
//! never prints.

mod anew;
pub mod config;
mod control;
mod follow;
pub mod frames;
mod hindsight;
mod lifecycle;
mod lifetime;
mod listeners;
mod names;
pub mod reconcile;
mod recovery;
mod refusal;
mod registries;
mod secrets;
mod slots;
mod squash;
pub mod store;
mod upkeep;
mod verbs;

pub use backends::native::{Authority, Outlet, Passage, Room, SealedState};
pub use control::{Control, Error};
pub use follow::Follow;
pub use hindsight::{Conversation, Hindsight};
pub use lifecycle::lifecycle_markdown;
pub use store::{Requests, Verdicts};
pub use verbs::{Gate, Keep, Look, Preview, Throwaway};
