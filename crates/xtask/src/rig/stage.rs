//! A scratch folder with a zeno in it, for one row or one trial. Nothing of it is left when that is over.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::traces::Traces;
use super::{Rig, RigError, Scratch, Zeno, tree};
use crate::process;

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) zeno: Zeno,
    pub(crate) scratch: Scratch,
}

impl Stage {
    pub(crate) fn new(rig: &Rig) -> Result<Self, RigError> {
        let scratch = Scratch::new(rig)?;
        let zeno = Zeno::new(&rig.zeno, scratch.join("home"));
        Ok(Self { zeno, scratch })
    }

    /// With a repository of this many files that zeno has seen once: its daemon runs and has captured it.
    pub(crate) fn with_repository(rig: &Rig, count: usize) -> Result<(Self, PathBuf), RigError> {
        let stage = Self::new(rig)?;
        let repository = stage.scratch.join("repository");
        tree::repository(&repository, count)?;
        process::quietly(&mut stage.zeno.run(&repository, &["true"]))?;
        Ok((stage, repository))
    }

    pub(crate) fn traces(&self) -> Result<Traces, RigError> {
        Traces::now(self.scratch.path())
    }

    /// Its traces when so many sandboxes are gone. Processes that just ended stay zombies for a moment where nobody
    /// hurries to reap them.
    pub(crate) fn settled(&self, before: &Traces, sandboxes: usize) -> Result<Traces, RigError> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let after = self.traces()?;
            if after.is_clean_after(before, sandboxes) || Instant::now() > deadline {
                return Ok(after);
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The scratch folder goes next; a daemon that lives on would hold it.
        if let Err(error) = self.zeno.stop() {
            eprintln!("left behind in {}: {}", self.scratch.path().display(), crate::chain(&error));
        }
    }
}
