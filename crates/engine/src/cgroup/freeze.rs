//! Pausing: every process of a sandbox stands still, without a signal it could notice.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use model::SandboxId;
use rustix::process::Pid;

use super::Error;
use super::group::{join, make, read, write};
use super::layout::{Controller, Layout, Place, Version};

impl Layout {
    /// Brings every process of a sandbox to rest. `processes` lists them and is asked again until it names no
    /// new one: a process that is not yet in may still start others.
    ///
    /// They stay in the cgroup made for this after [`Layout::thaw`]; it goes with the sandbox.
    ///
    /// # Errors
    ///
    /// This user may use no freezer here, a process could not be moved, or the sandbox did not come to rest
    /// within five seconds; it runs on then.
    pub fn freeze(
        &self,
        id: SandboxId,
        mut processes: impl FnMut() -> io::Result<Vec<Pid>>,
    ) -> Result<(), Error> {
        let place = self.place(Controller::Freezer).map_err(|missing| Error::Unusable { missing })?;
        self.prepare(place, Controller::Freezer)?;
        let directory = self.root(place).join(id.to_string());
        make(&directory)?;
        let result = self.gather(place, &directory, id, &mut processes);
        if result.is_err()
            && let Err(error) = switch(place.version, &directory, Switch::Thaw)
        {
            tracing::warn!(%error, "a sandbox that could not be frozen could not be thawed either");
        }
        result
    }

    /// Lets a frozen sandbox run on. One that was never frozen is left as it is.
    ///
    /// # Errors
    ///
    /// The kernel refused.
    pub fn thaw(&self, id: SandboxId) -> Result<(), Error> {
        let place = self.place(Controller::Freezer).map_err(|missing| Error::Unusable { missing })?;
        let directory = self.root(place).join(id.to_string());
        if directory.is_dir() { switch(place.version, &directory, Switch::Thaw) } else { Ok(()) }
    }

    fn gather(
        &self,
        place: &Place,
        directory: &Path,
        id: SandboxId,
        processes: &mut dyn FnMut() -> io::Result<Vec<Pid>>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + REST;
        // Frozen first, so that each process stands still from the moment it is moved in.
        switch(place.version, directory, Switch::Freeze)?;
        let mut moved = HashSet::new();
        loop {
            let listed = processes().map_err(|source| Error::Processes { id, source })?;
            let new: Vec<Pid> = listed.into_iter().filter(|pid| moved.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            new.into_iter().try_for_each(|pid| join_if_there(directory, pid))?;
            if Instant::now() > deadline {
                return Err(Error::StillMoving { id });
            }
        }
        for round in 1.. {
            if is_at_rest(place.version, directory)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            nudge(place.version, directory, round)?;
        }
        Err(Error::StillMoving { id })
    }
}

/// A process that ended between being listed and being moved needs no freezing.
fn join_if_there(directory: &Path, pid: Pid) -> Result<(), Error> {
    match join(directory, pid) {
        Err(Error::Join { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

#[derive(Clone, Copy)]
enum Switch {
    Freeze,
    Thaw,
}

fn switch(version: Version, directory: &Path, switch: Switch) -> Result<(), Error> {
    match (version, switch) {
        (Version::V1, Switch::Freeze) => write(&directory.join("freezer.state"), "FROZEN"),
        (Version::V1, Switch::Thaw) => write(&directory.join("freezer.state"), "THAWED"),
        (Version::V2, Switch::Freeze) => write(&directory.join("cgroup.freeze"), "1"),
        (Version::V2, Switch::Thaw) => write(&directory.join("cgroup.freeze"), "0"),
    }
}

/// Version 1 can stay half frozen for ever when a process forks while it is caught (tried: a shell's loop, one
/// time in a few); asked again, with a short thaw now and then, it comes to rest.
fn nudge(version: Version, directory: &Path, round: u32) -> Result<(), Error> {
    match version {
        Version::V1 if round.is_multiple_of(20) => {
            switch(version, directory, Switch::Thaw)?;
            switch(version, directory, Switch::Freeze)
        }
        Version::V1 => switch(version, directory, Switch::Freeze),
        Version::V2 => Ok(()),
    }
}

fn is_at_rest(version: Version, directory: &Path) -> Result<bool, Error> {
    match version {
        Version::V1 => Ok(read(&directory.join("freezer.state"))?.trim() == "FROZEN"),
        Version::V2 => Ok(read(&directory.join("cgroup.events"))?.lines().any(|line| line == "frozen 1")),
    }
}

/// A process in uninterruptible sleep (a hung disk) may take for ever; nobody waits that long.
const REST: Duration = Duration::from_secs(5);
