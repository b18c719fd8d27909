//! A scratch folder with a zeno in it, for one row. Nothing of it is left when the row is over.

use std::path::PathBuf;

use super::{Bench, BenchError};
use crate::rig::traces::Traces;
use crate::rig::{Scratch, Zeno, tree};

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) zeno: Zeno,
    pub(crate) scratch: Scratch,
}

impl Stage {
    pub(crate) fn new(bench: &Bench) -> Result<Self, BenchError> {
        let scratch = Scratch::new(&bench.place)?;
        let zeno = Zeno::new(&bench.zeno, scratch.join("home"));
        Ok(Self { zeno, scratch })
    }

    pub(crate) fn repository(&self, name: &str, count: usize) -> Result<PathBuf, BenchError> {
        let folder = self.scratch.join(name);
        tree::repository(&folder, count)?;
        Ok(folder)
    }

    pub(crate) fn traces(&self) -> Result<Traces, BenchError> {
        Ok(Traces::now(self.scratch.path())?)
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
