//! What a sandbox changed.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;

use engine::diff::{Ask, Comparison, between, compare};
use engine::launcher::Rights;
use model::diff::{Between, ChangeKind, Detail, Diff};
use model::exec::Text;
use model::{Problem, SandboxId};
use tokio::sync::mpsc;

use super::Native;
use super::problem::NativeError;
use super::snapshot::{Saved, UPPER, open_disk};
use super::store::Folder;

impl Native {
    /// Compares what the sandbox wrote with what it started from. It may be running. With `paths`, which are absolute, only
    /// what is at or below one of them; with `from`, only what it wrote since.
    pub async fn diff(
        &self,
        id: SandboxId,
        from: Option<Saved>,
        paths: Vec<PathBuf>,
        detail: Detail,
    ) -> Result<Diff, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            native.comparison(id, from, &paths)?.diff(detail).map_err(NativeError::from)
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// What two sandboxes changed differently in their workspaces.
    pub async fn between(
        &self,
        one: SandboxId,
        other: SandboxId,
        from: Option<Saved>,
        paths: Vec<PathBuf>,
    ) -> Result<Between, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let one = native.comparison(one, from.clone(), &paths)?;
            let other = native.comparison(other, from, &paths)?;
            between(&one, &other).map_err(NativeError::from)
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// What it changed in its workspace, as pieces of a patch. The last piece is a problem if the patch is not whole.
    #[must_use]
    pub fn patch(
        &self,
        id: SandboxId,
        from: Option<Saved>,
        paths: Vec<PathBuf>,
    ) -> mpsc::Receiver<Result<Vec<u8>, Problem>> {
        let (sender, receiver) = mpsc::channel(PIECES);
        let native = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut pieces = Pieces { sender, buffer: Vec::new() };
            let written = native.write_patch(id, from, &paths, &mut pieces);
            if let Err(error) = written {
                // Should nobody listen any more, nobody misses it.
                pieces.sender.blocking_send(Err(error.into())).unwrap_or_default();
            }
        });
        receiver
    }

    fn write_patch(
        &self,
        id: SandboxId,
        from: Option<Saved>,
        paths: &[PathBuf],
        pieces: &mut Pieces,
    ) -> Result<(), NativeError> {
        self.comparison(id, from, paths)?.patch(pieces)?;
        pieces.flush().map_err(NativeError::Talk)
    }

    /// What it changed in its workspace, by path in there; of what moved both paths.
    pub(super) fn changed_in_workspace(&self, id: SandboxId) -> Result<HashSet<Text>, NativeError> {
        let diff = self.comparison(id, None, &[])?.diff(Detail::Paths)?;
        let mut changed = HashSet::new();
        for change in diff.workspace {
            if let ChangeKind::Renamed { from } = change.kind {
                changed.insert(from);
            }
            changed.insert(change.path);
        }
        Ok(changed)
    }

    fn comparison(
        &self,
        id: SandboxId,
        from: Option<Saved>,
        paths: &[PathBuf],
    ) -> Result<Comparison, NativeError> {
        let folder = Folder::of(&self.0.home, id);
        let mut stored = folder.read()?;
        if let Some(Saved(mut below)) = from {
            // Both may stand on the same, one of them on fewer layers.
            for stack in [&mut stored.layers, &mut below.layers] {
                self.0.squashed.apply(stack, &self.0.layers);
            }
            if !stored.layers.ends_with(&below.layers) {
                return Err(NativeError::NotBelow);
            }
            stored.layers.truncate(stored.layers.len() - below.layers.len());
            stored.plan = self.0.layers.under(&stored.plan, &below.layers)?;
        }
        let layers: Vec<PathBuf> = stored.layers.iter().map(|layer| self.0.layers.path(*layer)).collect();
        let disk = stored.plan.disk.map(|_| open_disk(&folder, &stored)).transpose()?;
        let upper = disk.as_ref().map_or_else(|| folder.upper(stored.turn), |disk| disk.path().join(UPPER));
        // The folders on the disk are opened here, and stay open.
        Ok(compare(&Ask {
            home: &self.0.home,
            upper: &upper,
            layers: &layers,
            plan: &stored.plan,
            workspace: stored.frozen.as_ref().map(|frozen| frozen.workspace.as_path()),
            rights: Rights::of_this_process(),
            paths,
        })?)
    }
}

/// Writes into a channel, which holds only so much.
struct Pieces {
    sender: mpsc::Sender<Result<Vec<u8>, Problem>>,
    buffer: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.buffer);
        if piece.is_empty() {
            return Ok(());
        }
        self.sender.blocking_send(Ok(piece)).map_err(|_gone| io::ErrorKind::BrokenPipe.into())
    }
}

const PIECES: usize = 4;
const PIECE: usize = 64 << 10;
