//! Stub until the `capture` branch is merged.
use std::path::{Path, PathBuf};

use model::caveat::Caveat;
use model::mask::NameMask;
use model::sandbox::Masked;
use serde::{Deserialize, Serialize};

pub const FROZEN_ROOT: &str = ".zeno-frozen";

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Frozen {
    pub workspace: PathBuf,
    pub generation: u64,
    pub taken: jiff::Timestamp,
    pub parts: Vec<FrozenPart>,
    pub caveats: Vec<Caveat>,
    pub masked: Vec<Masked>,
}
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct FrozenPart {
    pub mountpoint: PathBuf,
    pub layers: Vec<PathBuf>,
    pub live: Option<PathBuf>,
}
#[derive(Clone, Copy, Debug)]
pub enum Live {
    Redirect,
    Stubs,
    Copy,
}
#[derive(Debug, thiserror::Error)]
#[error("no capture yet")]
pub struct CaptureError;
#[derive(Debug)]
pub struct Captures;
#[must_use]
pub fn worktree_around(_: &Path) -> Option<PathBuf> {
    None
}
impl Captures {
    pub fn open(_: PathBuf, _: Live, _: Vec<NameMask>) -> Result<Self, CaptureError> {
        Ok(Self)
    }
    pub fn freeze(
        &self,
        _: &Path,
        _: model::SandboxId,
        _: &[PathBuf],
        _: &dyn Fn(model::exec::Progress),
    ) -> Result<Frozen, CaptureError> {
        Err(CaptureError)
    }
    pub fn adopt(&self, _: model::SandboxId, _: &Frozen) -> Result<(), CaptureError> {
        Ok(())
    }
    pub fn release(&self, _: model::SandboxId) {}
    pub fn behind(&self, _: &Frozen, _: usize) -> Result<(Vec<PathBuf>, u64), CaptureError> {
        Err(CaptureError)
    }
    pub fn sweep(&self, _: &[model::SandboxId]) {}
}
