//! Secrets in folders that are read live. What is read live cannot be masked file by file, so a folder with a secret near
//! its top is captured instead, level by level, and only what is harmless in it stays live.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use model::mask::NameMask;
use rustix::fs::FileType;

use super::files::{list, open_beneath};

/// Is there something in `folder` that one of `masks` would hide? What cannot be read cannot be shown either.
pub(super) fn lie_near_the_top_of(folder: OwnedFd, masks: &[NameMask]) -> bool {
    let mut looked = 0;
    let mut folders = VecDeque::from([(folder, 1)]);
    while let Some((folder, level)) = folders.pop_front() {
        let Ok(names) = list(folder.as_fd()) else { continue };
        looked += names.len();
        for (name, kind) in names {
            match kind {
                FileType::Directory if level < NameMask::LIVE_LEVELS && looked < NameMask::LIVE_NAMES => {
                    folders.extend(open_beneath(&folder, &name).ok().map(|folder| (folder, level + 1)));
                }
                FileType::Directory => {}
                _ if masks.iter().any(|mask| mask.matches(&name)) => return true,
                _ => {}
            }
        }
    }
    false
}
