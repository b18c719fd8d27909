//! What a sandbox sees, as data: which mounts it is made of, what is hidden, what is put in.
//!
//! A [`Plan`] can be printed, stored and tested without any rights. The launcher and init carry it out.
//! Never touches the host beyond reading it.

mod account;
mod build;
mod hide;
mod masked;
pub(crate) mod mounts;
mod plan;
mod skeleton;

pub use build::{Ask, Planner, ViewError};
pub use plan::{Bone, BoneKind, DiskKind, Hidden, HiddenKind, Hides, Lower, Meta, Part, Plan, Root};
