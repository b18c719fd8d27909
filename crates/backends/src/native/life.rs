//! Pausing, stopping, ending, and what a sandbox has used.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use engine::image;
use engine::init::log::EXPIRED;
use engine::init::wire::Request;
use engine::view::DiskKind;
use model::exec::Text;
use model::sandbox::{Freshness, Masked, Overlap};
use model::units::Size;
use model::{Caveat, Problem, SandboxId};
use rustix::process::Signal;

use super::problem::NativeError;
use super::store::{Folder, Stored};
use super::{End, Native, Running, disk, store, talk};

/// How many moved-on paths are listed; the total is always given. A face shows fewer, and says how to see the others.
const LISTED: usize = 10_000;
/// Of the protocol: it is not talked to any more.
const UNKNOWN: u32 = 0;

impl Native {
    /// Resolves when the sandbox's init is gone.
    pub async fn ended(&self, running: &Running) -> End {
        match running.process.readable().await {
            Ok(_gone) if disk::ends_with(&self.folder(running).log(), EXPIRED) => End::Expired,
            Ok(_gone) => End::Died { reason: "its first process was killed or crashed".to_owned() },
            Err(error) => End::Died { reason: format!("its first process cannot be watched: {error}") },
        }
    }

    /// Freezes every process. Memory and descriptors stay. Init itself goes on: it holds the clock.
    pub async fn pause(&self, running: &Running) -> Result<(), Problem> {
        talk::ask(&self.folder(running).0, &Request::Freeze).await
    }

    pub async fn resume(&self, running: &Running) -> Result<(), Problem> {
        talk::ask(&self.folder(running).0, &Request::Thaw).await
    }

    /// Sets init's deadline anew.
    pub async fn set_deadline(&self, running: &Running, deadline: Option<u64>) -> Result<(), Problem> {
        talk::ask(&self.folder(running).0, &Request::Deadline { at: deadline }).await
    }

    /// Writes down how many commands there were, for whoever makes the processes of this sandbox anew. One that cannot be
    /// asked counts from where it was written down last.
    pub async fn note_execs(&self, running: &Running) -> Result<(), Problem> {
        let folder = self.folder(running);
        match talk::ask(&folder.0, &Request::LastExec).await {
            Ok(0) => Ok(()),
            Ok(number) => Ok(folder.write_last_exec(number)?),
            // It ended just now, or is an init of before this could be asked.
            Err(problem) => {
                tracing::debug!(sandbox = %running.id, error = %problem, "init cannot tell how many commands it had");
                Ok(())
            }
        }
    }

    /// Ends every process; keeps the layers, on disk.
    pub async fn stop(&self, running: &Running) -> Result<(), Problem> {
        kill(running).await?;
        self.held().remove(&running.id);
        let folder = self.folder(running);
        let synced = tokio::task::spawn_blocking(move || {
            disk::sync(&folder.0)?;
            if let Err(error) = folder.note_synced() {
                // It is on the disk all the same; at worst its status will doubt that.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a sandbox that is on the disk does not say so"
                );
            }
            Ok::<_, NativeError>(())
        });
        Ok(synced.await.map_err(NativeError::from)??)
    }

    /// Ends every process, for as long as it takes to change what it stands on. What it wrote is not brought to the disk
    /// first.
    pub async fn end(&self, id: SandboxId) -> Result<(), Problem> {
        self.kill_leftover(id).await
    }

    /// Whether a sandbox has all it was made with. One that is being made has not, and one whose removal was begun.
    #[must_use]
    pub fn is_whole(&self, id: SandboxId) -> bool {
        Folder::of(&self.0.home, id).has_plan()
    }

    /// Ends every process and removes everything. Also for a half-made, stopped or dead sandbox; done twice is done.
    pub async fn teardown(&self, id: SandboxId) -> Result<(), Problem> {
        self.kill_leftover(id).await?;
        self.remove(id, None)
    }

    /// The same for a throwaway whose command has ended, and with it everyone inside: init has seen to that. It is killed
    /// all the same, but while the kernel takes its namespaces apart, we go on.
    pub async fn dismiss(&self, id: SandboxId) -> Result<(), Problem> {
        if !self.0.stock.has_lent(id) {
            return self.teardown(id).await;
        }
        let held = self.held().remove(&id);
        let Some(running) = held else { return self.teardown(id).await };
        signal(&running)?;
        self.restock();
        self.remove(id, Some(&running))
    }

    fn remove(&self, id: SandboxId, ending: Option<&Running>) -> Result<(), Problem> {
        tokio::task::block_in_place(|| {
            self.0.captures.release(id);
            self.0.unlimit(id)?;
            if self.0.put_away(id, ending.and_then(|running| running.process.get_ref().try_clone().ok())) {
                Ok(())
            } else {
                Folder::of(&self.0.home, id).remove()
            }
        })?;
        Ok(())
    }

    /// Ends the init of a sandbox, whether we hold it or know nothing but its name.
    pub(super) async fn kill_leftover(&self, id: SandboxId) -> Result<(), Problem> {
        let held = self.held().remove(&id);
        if let Some(running) = held {
            signal(&running)?;
            // While its processes end, the processor has nothing better to do.
            self.restock();
            return Ok(ended(&running).await?);
        }
        let folder = Folder::of(&self.0.home, id);
        let Ok(stream) = talk::connect(&folder.0).await else { return Ok(()) };
        let peer =
            rustix::net::sockopt::socket_peercred(stream.as_fd()).map_err(|e| NativeError::Talk(e.into()))?;
        match rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty()) {
            Ok(process) => Ok(kill(&self.running(id, process, UNKNOWN)?).await?),
            Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(NativeError::Signal(error.into()).into()),
        }
    }

    /// Every sandbox that has anything on this machine.
    pub async fn inventory(&self) -> Result<Vec<SandboxId>, Problem> {
        let home = self.0.home.clone();
        let read = tokio::task::spawn_blocking(move || store::inventory(&home));
        Ok(read.await.map_err(NativeError::from)??)
    }

    pub async fn freshness(&self, id: SandboxId) -> Result<Option<Freshness>, Problem> {
        let native = self.clone();
        let look = tokio::task::spawn_blocking(move || {
            let Stored { frozen, masked, .. } = Folder::of(&native.0.home, id).read()?;
            let Some(frozen) = frozen else { return Ok(None) };
            let captured = frozen.taken;
            // A folder that is not there has no paths to compare, and that is no reason to say nothing at all.
            if !frozen.workspace.exists() {
                let (behind, overlap) = (Vec::new(), None);
                return Ok(Some(Freshness { captured, behind, behind_total: 0, overlap, gone: true }));
            }
            let (mut behind, _) = native.0.captures.behind(&frozen, usize::MAX)?;
            // What is hidden from it cannot be out of date in it.
            behind.retain(|path| {
                let path = frozen.workspace.join(path);
                !masked.iter().any(|masked| path.starts_with(masked.path.as_os_str()))
            });
            let mut behind: Vec<Text> = behind.into_iter().map(Into::into).collect();
            let behind_total = behind.len() as u64;
            let overlap = native.overlap(id, &behind);
            behind.truncate(LISTED);
            Ok::<_, NativeError>(Some(Freshness { captured, behind, behind_total, overlap, gone: false }))
        });
        Ok(look.await.map_err(NativeError::from)??)
    }

    /// Which of these paths the sandbox has changed, too.
    fn overlap(&self, id: SandboxId, behind: &[Text]) -> Option<Overlap> {
        if behind.is_empty() {
            return Some(Overlap { paths: Vec::new(), total: 0 });
        }
        let changed = match self.changed_in_workspace(id) {
            Ok(changed) => changed,
            // It is only an addition to what was asked, and another verb gives the reason.
            Err(error) => {
                tracing::debug!(sandbox = %id, error = &error as &dyn std::error::Error, "not compared");
                return None;
            }
        };
        let mut paths: Vec<Text> = behind.iter().filter(|path| changed.contains(path)).cloned().collect();
        let total = paths.len() as u64;
        paths.truncate(LISTED);
        Some(Overlap { paths, total })
    }

    /// What is hidden from it, and the caveats of what it was made from and has been through.
    pub async fn told(&self, id: SandboxId) -> Result<(Vec<Masked>, Vec<Caveat>), Problem> {
        let folder = Folder::of(&self.0.home, id);
        let read = tokio::task::spawn_blocking(move || folder.read());
        let Stored { masked, caveats, .. } = read.await.map_err(NativeError::from)??;
        Ok((masked, caveats))
    }

    /// Bytes that what it wrote takes in the store, with the layers it stands on and what it deleted but holds open.
    pub async fn written(&self, id: SandboxId) -> Result<Size, Problem> {
        let native = self.clone();
        let count = tokio::task::spawn_blocking(move || {
            let folder = Folder::of(&native.0.home, id);
            let stored = folder.read()?;
            let mut bytes = disk::used(&folder.upper(stored.turn))?.0;
            for layer in stored.layers {
                bytes += native.0.layer_size(layer)?.0;
            }
            Ok::<_, NativeError>(Size(bytes))
        });
        let linked = count.await.map_err(NativeError::from)??;
        Ok(Size(linked.0.saturating_add(self.unlinked(id).await)))
    }

    /// Bytes that no folder shows any more. Only its processes know of them, so without processes there are none.
    async fn unlinked(&self, id: SandboxId) -> u64 {
        if !self.held().contains_key(&id) {
            return 0;
        }
        match talk::ask(&Folder::of(&self.0.home, id).0, &Request::Unlinked).await {
            Ok(bytes) => bytes,
            // It ended just now, or is an init of before this could be asked.
            Err(problem) => {
                tracing::debug!(sandbox = %id, error = %problem, "init cannot tell what it deleted and holds open");
                0
            }
        }
    }

    /// Bytes in use on the disk of a sandbox that has one of its own.
    pub async fn disk_use(&self, id: SandboxId) -> Result<Size, Problem> {
        let folder = Folder::of(&self.0.home, id);
        let running = self.held().contains_key(&id);
        if running {
            match talk::ask(&folder.0, &Request::DiskUse).await {
                Ok(bytes) => return Ok(Size(bytes)),
                // It ended just now, or is an init of before this could be asked.
                Err(problem) => {
                    tracing::debug!(sandbox = %id, error = %problem, "init cannot tell its disk use")
                }
            }
        }
        let count = tokio::task::spawn_blocking(move || {
            let stored = folder.read()?;
            match stored.plan.disk_kind {
                DiskKind::Image => Ok(Size(image::used(&folder.image(stored.turn))?)),
                // What was in memory is gone.
                DiskKind::Memory => Ok::<_, NativeError>(Size(0)),
            }
        });
        Ok(count.await.map_err(NativeError::from)??)
    }

    /// The file that holds the output of its commands: records for `engine::init::log`.
    #[must_use]
    pub fn log_path(&self, id: SandboxId) -> PathBuf {
        Folder::of(&self.0.home, id).log()
    }
}

/// Ends init, and with it everyone inside, and waits until they and their mounts are gone.
async fn kill(running: &Running) -> Result<(), NativeError> {
    signal(running)?;
    ended(running).await
}

fn signal(running: &Running) -> Result<(), NativeError> {
    match rustix::process::pidfd_send_signal(running.process.get_ref(), Signal::KILL) {
        // It may have ended by itself.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(NativeError::Signal(error.into())),
    }
}

async fn ended(running: &Running) -> Result<(), NativeError> {
    let gone = tokio::time::timeout(std::time::Duration::from_secs(30), running.process.readable());
    match gone.await {
        Ok(Ok(_gone)) => Ok(()),
        Ok(Err(error)) => Err(NativeError::Signal(error)),
        Err(_elapsed) => Err(NativeError::Signal(io::ErrorKind::TimedOut.into())),
    }
}
