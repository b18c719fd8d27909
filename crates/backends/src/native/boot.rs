//! Whether what a sandbox wrote outlived the machine's last end.
//!
//! Its overlays are mounted `volatile`: nothing is brought to the disk when they are unmounted, and overlayfs calls what is left
//! of one that was in use when the machine ended not to be trusted. zeno takes it all the same, and says so.

use std::fs;
use std::path::Path;

use model::Caveat;
use model::caveat::CaveatKind;
use serde::{Deserialize, Serialize};

use super::problem::NativeError;
use super::store::Stored;

/// One time from the machine's start to its end, by the kernel's name for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Boot(String);

impl Boot {
    pub(super) fn of_this_machine() -> Result<Self, NativeError> {
        let path = Path::new("/proc/sys/kernel/random/boot_id");
        let name =
            fs::read_to_string(path).map_err(|source| NativeError::Read { path: path.to_owned(), source })?;
        Ok(Self(name.trim().to_owned()))
    }
}

impl Stored {
    /// Did the machine end before what it wrote was known to be on the disk? Then it says so from now on. Asked when
    /// nothing of it can run: before the daemon serves anyone.
    pub(super) fn outlived(&mut self, boot: &Boot) -> bool {
        if self.ran_in.take_if(|ran_in| ran_in != boot).is_none() {
            return false;
        }
        let caveat = Caveat::new(CaveatKind::Durability, LOST);
        if !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
        true
    }
}

const LOST: &str = "The machine was started anew before all that this sandbox wrote was known to be on the disk: if it lost \
                    power, files that were written last may be missing, empty or half written. Look at them before you \
                    promote them, or go back to an earlier state: zeno rollback SANDBOX SNAPSHOT.";
