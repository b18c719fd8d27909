//! Checks, verdicts, races and stages: whether a state is good, which of several is best, and how far it goes out.
//!
//! Checks run on copies of a sealed state, so that what they write voids nothing. A verdict holds for the digest of that
//! state and for no other. Never changes a sandbox that it judges, never knows HTTP, never prints.

mod command;
mod definition;
mod judge;
mod log;
mod promote;
mod race;
mod shelf;
mod stages;
mod standing;
mod suite;
mod verify;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use control::Control;
use model::exec::Text;
use tokio::sync::mpsc;

use shelf::Shelf;

pub use definition::definition;
pub use standing::Standing;

/// The handle that everything above this crate holds. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lanes {
    control: Control,
    /// What checks wrote, by verdict.
    logs: Shelf,
    /// What candidates wrote, by race.
    races: Shelf,
    /// What the commands of stages wrote, by promotion.
    stages: Shelf,
    /// Whoever promotes into a folder holds its turn.
    turns: Arc<Mutex<BTreeMap<Text, Arc<tokio::sync::Mutex<()>>>>>,
}

impl Lanes {
    #[must_use]
    pub fn new(control: Control, home: &Path) -> Self {
        let [logs, races, stages] = ["verdicts", "races", "stages"].map(|name| Shelf::new(home, name));
        Self { control, logs, races, stages, turns: Arc::default() }
    }
}

/// Where steps are told. Whoever no longer listens is done with the whole of it.
pub type Steps<T> = mpsc::Sender<T>;
