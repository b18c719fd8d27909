//! What this machine's cgroups let us do: probed once, kept as a type.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use model::limits::Limits;
use serde::{Deserialize, Serialize};

use super::base::base;
use super::hierarchy::{Hierarchy, hierarchies};
use super::remedy::remedy;

/// Which controllers there are and where we may use them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The name of this daemon's own directory, made from its home.
    pub(super) name: String,
    pub(super) standings: BTreeMap<Controller, Standing>,
    uid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    Cpu,
    Memory,
    Pids,
}

impl Controller {
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    /// As the kernel calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    V1,
    V2,
}

/// How we stand with one controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The kernel does not have it, or it is not mounted.
    Absent,
    /// It is there, but this user may not make cgroups in it.
    Forbidden {
        version: Version,
        mount: PathBuf,
    },
    Usable(Place),
}

/// A directory in which we may make cgroups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub version: Version,
    pub base: PathBuf,
}

/// A limit that would not hold here, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unenforceable {
    pub controller: Controller,
    /// The exact command; empty when there is none.
    pub remedy: String,
}

impl Layout {
    /// Looks at the machine: a dozen small reads, no writes.
    #[must_use]
    pub fn probe(home: &Path) -> Self {
        // A machine without /proc has no cgroups we could use either.
        let read = |path| fs::read_to_string(path).unwrap_or_else(|_absent| String::new());
        let found = hierarchies(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        Self::of(&found, home, rustix::process::geteuid().as_raw())
    }

    pub(super) fn of(hierarchies: &[Hierarchy], home: &Path, uid: u32) -> Self {
        let mut standings = BTreeMap::from(Controller::ALL.map(|controller| (controller, Standing::Absent)));
        for hierarchy in hierarchies {
            for (controller, standing) in standings_in(hierarchy, uid) {
                let known = standings.get(&controller);
                if matches!(standing, Standing::Usable(_)) || known == Some(&Standing::Absent) {
                    standings.insert(controller, standing);
                }
            }
        }
        Self { name: format!("zeno-{:016x}", fingerprint(home)), standings, uid }
    }

    #[must_use]
    pub fn standing(&self, controller: Controller) -> &Standing {
        &self.standings[&controller]
    }

    /// Would these limits hold here? Looks at processors, memory and processes; disk and time are kept elsewhere.
    ///
    /// # Errors
    ///
    /// The ones that would not, each with what to do about it.
    pub fn can_enforce(&self, limits: &Limits) -> Result<(), Vec<Unenforceable>> {
        let missing: Vec<_> =
            asked_for(limits).into_iter().filter_map(|controller| self.place(controller).err()).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    pub(super) fn place(&self, controller: Controller) -> Result<&Place, Unenforceable> {
        match self.standing(controller) {
            Standing::Usable(place) => Ok(place),
            Standing::Absent | Standing::Forbidden { .. } => {
                Err(Unenforceable { controller, remedy: self.remedy(controller) })
            }
        }
    }

    /// What would make this controller usable; empty when it is, or when nothing would.
    #[must_use]
    pub fn remedy(&self, controller: Controller) -> String {
        remedy(self.standing(controller), self.uid)
    }
}

/// The controllers that these limits need.
pub(super) fn asked_for(limits: &Limits) -> Vec<Controller> {
    let asked = [
        (Controller::Cpu, limits.cpus.is_some()),
        (Controller::Memory, limits.memory.is_some()),
        (Controller::Pids, limits.pids.is_some()),
    ];
    asked.into_iter().filter_map(|(controller, is_asked)| is_asked.then_some(controller)).collect()
}

fn standings_in(hierarchy: &Hierarchy, uid: u32) -> Vec<(Controller, Standing)> {
    let version = hierarchy.version;
    let base = base(hierarchy, uid);
    let present = |controller: &Controller| match version {
        Version::V1 => hierarchy.controllers.iter().any(|name| name == controller.name()),
        Version::V2 => {
            let listed = fs::read_to_string(hierarchy.mount.join("cgroup.controllers"));
            listed.is_ok_and(|text| text.split_whitespace().any(|name| name == controller.name()))
        }
    };
    Controller::ALL
        .into_iter()
        .filter(present)
        .map(|controller| match &base {
            Some(base) if base.controllers.contains(&controller) => {
                (controller, Standing::Usable(Place { version, base: base.directory.clone() }))
            }
            Some(_) | None => (controller, Standing::Forbidden { version, mount: hierarchy.mount.clone() }),
        })
        .collect()
}

/// FNV-1a: short and the same for ever, which the standard library's hash does not promise. Two homes that
/// collide would share caps, nothing worse.
fn fingerprint(home: &Path) -> u64 {
    home.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
