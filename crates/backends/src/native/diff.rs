//! What a sandbox changed.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;

use engine::diff::{Ask, Base, Comparison, Pair, compare};
use engine::image::Opened;
use engine::launcher::Rights;
use model::diff::{Between, ChangeKind, Detail, Diff};
use model::exec::Text;
use model::{Problem, SandboxId};
use tokio::sync::mpsc;

use super::problem::NativeError;
use super::snapshot::{Saved, UPPER, open_disk};
use super::store::{Folder, Stored};
use super::{Inner, Native};

/// What a sandbox is compared with.
#[derive(Clone, Debug)]
pub enum Other {
    Sandbox(SandboxId),
    Snapshot(Box<Saved>),
}

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
        let work = tokio::task::spawn_blocking(move || native.0.since(id, from, paths)?.diff(detail));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// What differs between a sandbox and another, or a snapshot; with `from`, what each changed is counted from there.
    pub async fn between(
        &self,
        one: SandboxId,
        other: Other,
        from: Option<Saved>,
        paths: Vec<PathBuf>,
        detail: Detail,
    ) -> Result<Between, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            native.0.pair(one, other, from, paths)?.between(detail).map_err(NativeError::from)
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
        self.in_pieces(move |inner, pieces| inner.since(id, from, paths)?.patch(pieces))
    }

    /// What makes of its workspace that of the other, in the same way.
    #[must_use]
    pub fn patch_between(
        &self,
        one: SandboxId,
        other: Other,
        paths: Vec<PathBuf>,
    ) -> mpsc::Receiver<Result<Vec<u8>, Problem>> {
        self.in_pieces(move |inner, pieces| Ok(inner.pair(one, other, None, paths)?.patch(pieces)?))
    }

    fn in_pieces(
        &self,
        write: impl FnOnce(&Inner, &mut Pieces) -> Result<(), NativeError> + Send + 'static,
    ) -> mpsc::Receiver<Result<Vec<u8>, Problem>> {
        let (sender, receiver) = mpsc::channel(PIECES);
        let native = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut pieces = Pieces { sender, buffer: Vec::new() };
            let written =
                write(&native.0, &mut pieces).and_then(|()| pieces.flush().map_err(NativeError::Talk));
            if let Err(error) = written {
                // Should nobody listen any more, nobody misses it.
                pieces.sender.blocking_send(Err(error.into())).unwrap_or_default();
            }
        });
        receiver
    }

    /// What it changed in its workspace, by path in there; of what moved both paths.
    pub(super) fn changed_in_workspace(&self, id: SandboxId) -> Result<HashSet<Text>, NativeError> {
        let diff = self.0.since(id, None, Vec::new())?.diff(Detail::Paths)?;
        let mut changed = HashSet::new();
        for change in diff.workspace {
            if let ChangeKind::Renamed { from } = change.kind {
                changed.insert(from);
            }
            changed.insert(change.path);
        }
        Ok(changed)
    }
}

/// What a sandbox wrote since a snapshot, or at all.
enum Since {
    /// It stands on that very snapshot.
    Written(Box<Comparison>),
    /// The snapshot lies elsewhere: a copy of a sandbox that ran, or on layers that were made one since.
    Views(Box<Pair>),
}

impl Since {
    fn diff(&self, detail: Detail) -> Result<Diff, NativeError> {
        Ok(match self {
            Self::Written(comparison) => comparison.diff(detail)?,
            Self::Views(pair) => pair.diff(detail)?,
        })
    }

    fn patch(&self, out: &mut dyn Write) -> Result<(), NativeError> {
        match self {
            Self::Written(comparison) => comparison.patch(out)?,
            Self::Views(pair) => pair.patch(out)?,
        }
        Ok(())
    }
}

/// A state that can be looked at.
struct State {
    stored: Stored,
    /// What a sandbox writes to; nothing, where all is sealed.
    upper: Option<PathBuf>,
    /// Kept open as long as the upper is read by its path.
    _disk: Option<Opened>,
}

impl Inner {
    fn since(&self, id: SandboxId, from: Option<Saved>, paths: Vec<PathBuf>) -> Result<Since, NativeError> {
        let state = self.sandbox_state(id)?;
        let Some(from) = from else {
            return Ok(Since::Written(Box::new(self.compared(&state, 0, &paths)?)));
        };
        let from = self.sealed_state_of(from);
        if base(&from, &state)? == Base::Apart {
            return Err(NativeError::OtherBase);
        }
        if state.stored.layers.ends_with(&from.stored.layers) {
            return Ok(Since::Written(Box::new(self.compared(&state, from.stored.layers.len(), &paths)?)));
        }
        let shared = shared(&from, &state);
        let (from, now) = (self.compared(&from, shared, &[])?, self.compared(&state, shared, &[])?);
        Ok(Since::Views(Box::new(Pair::new(from, now, Base::Shared, paths))))
    }

    fn pair(
        &self,
        one: SandboxId,
        other: Other,
        from: Option<Saved>,
        paths: Vec<PathBuf>,
    ) -> Result<Pair, NativeError> {
        let one = self.sandbox_state(one)?;
        let other = match other {
            Other::Sandbox(id) => self.sandbox_state(id)?,
            Other::Snapshot(saved) => self.sealed_state_of(*saved),
        };
        let base = base(&one, &other)?;
        let Some(from) = from.map(|from| self.sealed_state_of(from)) else {
            let below = if base == Base::Shared { shared(&one, &other) } else { 0 };
            let (one, other) = (self.compared(&one, below, &[])?, self.compared(&other, below, &[])?);
            return Ok(Pair::new(one, other, base, paths));
        };
        for state in [&one, &other] {
            if self::base(&from, state)? == Base::Apart {
                return Err(NativeError::OtherBase);
            }
        }
        let is_below = |state: &State| state.stored.layers.ends_with(&from.stored.layers);
        let is_below = is_below(&one) && is_below(&other);
        let below = match is_below {
            true => from.stored.layers.len(),
            false => shared(&one, &other).min(shared(&one, &from)),
        };
        let (one, other) = (self.compared(&one, below, &[])?, self.compared(&other, below, &[])?);
        let pair = Pair::new(one, other, base, paths);
        Ok(if is_below { pair } else { pair.since(self.compared(&from, below, &[])?) })
    }

    fn sandbox_state(&self, id: SandboxId) -> Result<State, NativeError> {
        let folder = Folder::of(&self.home, id);
        let mut stored = folder.read()?;
        // Another may stand on the same, one of them on fewer layers.
        self.squashed.apply(&mut stored.layers, &self.layers);
        let disk = stored.plan.disk.map(|_| open_disk(&folder, &stored)).transpose()?;
        let upper = disk.as_ref().map_or_else(|| folder.upper(stored.turn), |disk| disk.path().join(UPPER));
        Ok(State { stored, upper: Some(upper), _disk: disk })
    }

    fn sealed_state_of(&self, saved: Saved) -> State {
        let Saved(mut stored) = saved;
        self.squashed.apply(&mut stored.layers, &self.layers);
        State { stored, upper: None, _disk: None }
    }

    /// Compares a state with what lies below it, of which as many of its lowest layers count as part.
    fn compared(&self, state: &State, below: usize, paths: &[PathBuf]) -> Result<Comparison, NativeError> {
        let stored = &state.stored;
        let (own, below) = stored.layers.split_at(stored.layers.len() - below);
        let plan = self.layers.under(&stored.plan, below)?;
        let sealed = own.iter().map(|layer| self.layers.path(*layer));
        let written: Vec<PathBuf> = state.upper.iter().cloned().chain(sealed).collect();
        // The folders on a disk are opened here, and stay open.
        Ok(compare(&Ask {
            home: &self.home,
            upper: written.first().map(PathBuf::as_path),
            layers: written.get(1..).unwrap_or_default(),
            plan: &plan,
            workspace: stored.frozen.as_ref().map(|frozen| frozen.workspace.as_path()),
            rights: Rights::of_this_process(),
            paths,
        })?)
    }
}

/// What two states started from. Those of two workspaces have nothing in common that could be compared.
fn base(one: &State, other: &State) -> Result<Base, NativeError> {
    let workspace = |state: &State| state.stored.frozen.as_ref().map(|frozen| frozen.workspace.clone());
    let generation = |state: &State| state.stored.frozen.as_ref().map(|frozen| frozen.generation);
    let (ours, theirs) = (workspace(one), workspace(other));
    if ours != theirs {
        return Err(NativeError::OtherWorkspace { one: ours, other: theirs });
    }
    Ok(if generation(one) == generation(other) { Base::Shared } else { Base::Apart })
}

/// How many of their lowest layers two states share.
fn shared(one: &State, other: &State) -> usize {
    let (one, other) = (one.stored.layers.iter().rev(), other.stored.layers.iter().rev());
    one.zip(other).take_while(|(one, other)| one == other).count()
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
