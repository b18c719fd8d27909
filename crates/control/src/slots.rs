//! What the daemon holds in memory of each sandbox that exists: its turn, and its processes if it has any.
//!
//! The store is the record; this is how to reach what the record tells of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use backends::native::Running;
use model::exec::Context;
use model::limits::Limits;
use model::units::Size;
use model::{Name, Problem, SandboxId};

use crate::hindsight::Farewell;
use crate::names::{self, Known, Noun};
use crate::refusal;
use crate::secrets::Secrets;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<SandboxId, Arc<Slot>>,
    by_name: HashMap<Name, SandboxId>,
}

/// A sandbox that is not destroyed.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: SandboxId,
    pub(crate) name: Option<Name>,
    /// Whoever changes the sandbox's state holds this from before it asks for the state until the change is recorded.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Whoever gives its processes something to do holds this until they have it; whoever makes the processes anew holds
    /// it alone, so that nothing falls between the old and the new.
    pub(crate) door: tokio::sync::RwLock<()>,
    seat: Mutex<Option<Arc<Seat>>>,
    /// Gone with the daemon.
    pub(crate) secrets: Secrets,
}

/// A sandbox's processes, frozen or not.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) running: Running,
    pub(crate) context: Context,
    /// Stop it when it has written more than the default: nobody gave it a disk limit of its own.
    pub(crate) disk: DiskWatch,
    /// Its own memory limit.
    pub(crate) memory: Option<Size>,
    /// What whoever waits for one of its commands is told when zeno ends it.
    pub(crate) farewell: Farewell,
    /// True only while the record says `active`, so that a command needs neither a turn nor the store.
    active: AtomicBool,
    /// On the boot clock.
    deadline: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskWatch {
    Soft,
    /// The backend enforces a limit.
    None,
}

impl Slots {
    /// Takes the name, too, or says who has it.
    pub(crate) fn reserve(&self, id: SandboxId, name: Option<Name>) -> Result<Arc<Slot>, Problem> {
        let mut table = self.table();
        if let Some(name) = &name {
            if let Some(holder) = table.by_name.get(name) {
                return Err(refusal::name_taken(name, Some(*holder)));
            }
            table.by_name.insert(name.clone(), id);
        }
        let (turn, door, seat, secrets) = Default::default();
        let slot = Arc::new(Slot { id, name, turn, door, seat, secrets });
        table.by_id.insert(id, Arc::clone(&slot));
        Ok(slot)
    }

    pub(crate) fn remove(&self, slot: &Slot) {
        let mut table = self.table();
        table.by_id.remove(&slot.id);
        if let Some(name) = &slot.name {
            table.by_name.remove(name);
        }
    }

    pub(crate) fn by_id(&self, id: SandboxId) -> Option<Arc<Slot>> {
        self.table().by_id.get(&id).cloned()
    }

    /// Finds a sandbox by what a person typed.
    pub(crate) fn find(&self, which: &str) -> Result<Arc<Slot>, Problem> {
        let table = self.table();
        let bare = Noun::Sandbox.bare(which);
        // The two ways that programs use need no walk through all of them.
        let by_name = || bare.parse::<Name>().ok().and_then(|name| table.by_name.get(&name).copied());
        let exact = bare.parse().ok().or_else(by_name).and_then(|id| table.by_id.get(&id));
        if let Some(slot) = exact {
            return Ok(Arc::clone(slot));
        }
        let known: Vec<_> =
            table.by_id.values().map(|slot| Known { id: slot.id, name: slot.name.clone() }).collect();
        names::resolve(Noun::Sandbox, which, &known).map(|id| Arc::clone(&table.by_id[&id]))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Slot>> {
        self.table().by_id.values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic while the table is held")
    }
}

impl Slot {
    /// What a person calls it.
    pub(crate) fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.id.to_string(), ToString::to_string)
    }

    pub(crate) fn seat(&self) -> Option<Arc<Seat>> {
        self.seat.lock().expect("no panic while the seat is held").clone()
    }

    /// The processes, if commands may be given to them without asking the store.
    pub(crate) fn active_seat(&self) -> Option<Arc<Seat>> {
        self.seat().filter(|seat| seat.active.load(Ordering::Acquire))
    }

    pub(crate) fn sit(&self, seat: Seat) -> Arc<Seat> {
        let seat = Arc::new(seat);
        *self.seat.lock().expect("no panic while the seat is held") = Some(Arc::clone(&seat));
        seat
    }

    pub(crate) fn rise(&self) {
        *self.seat.lock().expect("no panic while the seat is held") = None;
    }

    pub(crate) fn is_seated(&self, seat: &Arc<Seat>) -> bool {
        self.seat().is_some_and(|current| Arc::ptr_eq(&current, seat))
    }
}

impl Seat {
    pub(crate) fn new(running: Running, context: Context, limits: &Limits, deadline: u64) -> Self {
        let disk = if limits.disk.is_some() { DiskWatch::None } else { DiskWatch::Soft };
        let (active, deadline) = (AtomicBool::new(false), AtomicU64::new(deadline));
        let (memory, farewell) = (limits.memory, Farewell::default());
        Self { running, context, disk, memory, farewell, active, deadline }
    }

    /// To be called with the turn held.
    pub(crate) fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Release);
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    pub(crate) fn set_deadline(&self, deadline: u64) {
        self.deadline.store(deadline, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use model::Code;

    use super::*;

    #[test]
    fn a_name_is_held_until_its_sandbox_is_gone() {
        let slots = Slots::default();
        let name: Name = "a".parse().unwrap();
        let first = slots.reserve(SandboxId::from_bits(1), Some(name.clone())).unwrap();
        let taken = slots.reserve(SandboxId::from_bits(2), Some(name.clone())).unwrap_err();
        assert_eq!(taken.code, Code::NameTaken);
        assert!(taken.detail.contains(&first.id.to_string()), "{taken}");
        assert_eq!(slots.all().len(), 1);
        for which in ["a", "sandbox:a", &first.id.to_string(), &first.id.to_string()[..6]] {
            assert!(Arc::ptr_eq(&slots.find(which).unwrap(), &first), "{which}");
        }
        slots.remove(&first);
        assert_eq!(slots.find("a").unwrap_err().code, Code::NotFound);
        slots.reserve(SandboxId::from_bits(2), Some(name)).unwrap();
    }
}
