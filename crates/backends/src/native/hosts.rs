//! The names that a sandbox with a gateway knows without asking: its own.
//!
//! The machine's own `/etc/hosts` is not shown there. Whatever it names would be dialled by its address, and the gateway decides
//! by name: it reads the file outside, like the machine does, when it looks a name up.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use engine::launcher::Given;
use engine::view::Plan;
use model::net::Wiring;

use super::problem::NativeError;

/// The file that lies in the home, for all sandboxes there are.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// What the machine was called when it was written.
    written: Mutex<Option<String>>,
}

impl Hosts {
    /// What a sandbox with this plan is given.
    pub(super) fn given(&self, home: &Path, plan: &Plan) -> Result<Option<Given>, NativeError> {
        match plan.net {
            Wiring::Gateway => {}
            Wiring::None | Wiring::Host => return Ok(None),
        }
        let Ok(at) = fs::canonicalize(HOSTS) else { return Ok(None) };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.as_deref() != Some(plan.hostname.as_str()) {
            write(home, &plan.hostname)?;
            *written = Some(plan.hostname.clone());
        }
        Ok(Some(Given { file: PathBuf::from(NAME), at }))
    }
}

/// In place of the one before, which those that have it keep.
fn write(home: &Path, hostname: &str) -> Result<(), NativeError> {
    let (path, new) = (home.join(NAME), home.join(format!("{NAME}.new")));
    let text =
        format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {hostname}\n");
    let made = fs::write(&new, text)
        .and_then(|()| fs::set_permissions(&new, Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&new, &path));
    made.map_err(|source| NativeError::Write { path, source })
}

const HOSTS: &str = "/etc/hosts";
const NAME: &str = "hosts";
