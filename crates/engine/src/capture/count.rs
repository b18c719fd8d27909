//! How many files a first capture will find, for whoever waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FileType;

use super::files::{join, list, look, open_beneath};
use super::git::Rules;
use super::index::Role;
use super::judge::{Bench, Fate};
use super::place::Place;
use super::state::read_rules;

/// Everything but folders, as the pass counts them. Only names are read, so that it takes a fraction of the time. What is
/// made or removed meanwhile makes a difference, and what cannot be read counts nothing. `None`: given up.
pub(super) fn files(place: &Place, is_given_up: &AtomicBool) -> Option<u64> {
    let mut files = 0;
    let mut folders = vec![Folder { path: Vec::new(), role: place.role, above: None }];
    while let Some(folder) = folders.pop() {
        if is_given_up.load(Ordering::Relaxed) {
            return None;
        }
        let Ok(dir) = open_beneath(&place.root, &folder.path) else { continue };
        let Ok(entries) = list(&dir) else { continue };
        let Folder { path, role, above } = folder;
        let rules = match role {
            Role::Work | Role::Ignored => read_rules(place, &dir, &path, above),
            _ => None,
        };
        let (live, masks) = (place.live, &place.masks);
        let bench = Bench { path: &path, role, rules: rules.as_deref(), live, masks };
        for (name, kind) in entries {
            if !matches!(kind, FileType::Directory | FileType::Unknown) {
                files += 1;
                continue;
            }
            let Ok(Some(seen)) = look(&dir, &name) else { continue };
            match bench.judge(&name, &seen).fate {
                Fate::Dir(role) => {
                    folders.push(Folder { path: join(&path, &name), role, above: rules.clone() })
                }
                Fate::Live => {}
                Fate::File(_) | Fate::Special | Fate::Masked(_) | Fate::Absent(_) => files += 1,
            }
        }
    }
    Some(files)
}

/// One that is still to be looked at.
struct Folder {
    path: Vec<u8>,
    role: Role,
    /// What is ignored in the folder around it.
    above: Option<Arc<Rules>>,
}
