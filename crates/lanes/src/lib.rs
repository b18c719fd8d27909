//! Checks, verdicts and races: whether a state is good, and which of several is best.
//!
//! Checks run on copies of a sealed state, so that what they write voids nothing. A verdict holds for the digest of that
//! state and for no other. Never changes a sandbox that it judges, never knows HTTP, never prints.

mod command;
mod definition;
mod judge;
mod log;
mod promote;
mod race;
mod standing;
mod suite;
mod verify;

use std::path::{Path, PathBuf};

use control::Control;
use tokio::sync::mpsc;

pub use definition::definition;
pub use standing::Standing;

/// The handle that everything above this crate holds. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lanes {
    control: Control,
    /// Where what checks wrote is kept, a folder for each verdict.
    logs: PathBuf,
    /// Where what candidates wrote is kept, a folder for each race.
    races: PathBuf,
}

impl Lanes {
    #[must_use]
    pub fn new(control: Control, home: &Path) -> Self {
        Self { control, logs: home.join("verdicts"), races: home.join("races") }
    }
}

/// Where steps are told. Whoever no longer listens is done with the whole of it.
pub type Steps<T> = mpsc::Sender<T>;
