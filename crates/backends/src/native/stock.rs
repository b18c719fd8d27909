//! Sandboxes made ahead of time, for whoever asks next for the same view.
//!
//! One that is taken is an ordinary sandbox from then on. One that is not belongs to nobody: it has no record and no
//! terms, its init ends as soon as our end of its conversation closes, and its folder is removed at the next start.
//! The folder of a sandbox that wrote nothing comes back and is used again: making and freeing a dozen inodes costs
//! more than everything else about a short command.

mod shelf;
mod spent;

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::launcher::Launched;
use model::SandboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::problem::NativeError;
use super::provision::{Beginning, Made};
use super::store::{Folder, Stored};
use super::{Inner, Native};

use spent::Spent;

pub(super) use shelf::Stock;

/// How long one is kept for nothing. It holds the machine's mounts, and somebody may want to unmount one.
const KEPT: Duration = Duration::from_secs(600);
/// After a sandbox was taken, its command has the processor to itself for so long, or until it ends.
const LATER: Duration = Duration::from_millis(5);

/// A killed process ends in less than a millisecond, unless the machine is very busy.
const ENDING: Duration = Duration::from_secs(5);

/// A sandbox that is nobody's yet.
#[derive(Debug)]
struct Ware {
    /// Names its folder, and holds its frozen workspace.
    id: SandboxId,
    stored: Stored,
    launched: Launched,
    conversation: StdStream,
    made: Instant,
}

impl Native {
    /// Has one more of these made: a little later, unless they are wanted one after the other.
    pub(super) fn restock_later(&self, stored: Stored) {
        if self.0.stock.order(stored) {
            return self.restock();
        }
        let native = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATER).await;
            native.restock();
        });
    }

    /// Has what is due made now.
    pub(super) fn restock(&self) {
        if self.0.stock.is_due() {
            let native = self.clone();
            tokio::task::spawn_blocking(move || {
                if let Err(error) = native.0.restock() {
                    // Whoever asks next hears of it, if it lasts.
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "nothing could be made ahead of time");
                }
            });
        }
    }

    /// Ends what nobody took for a long time.
    pub async fn tidy(&self) {
        self.clear(|inner| inner.clear_stock(|ware| ware.made.elapsed() > KEPT)).await;
    }

    /// Gives up everything that is kept only for speed: the disk is full.
    pub async fn make_room(&self) {
        self.clear(|inner| {
            inner.stock.cancel();
            inner.empty_stock();
        })
        .await;
    }

    async fn clear(&self, work: impl FnOnce(&Inner) + Send + 'static) {
        let native = self.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || work(&native.0)).await {
            tracing::warn!(%error, "what was made ahead of time could not be cleared away");
        }
    }
}

impl Inner {
    /// Takes a sandbox that shows this, or makes one, makes it this one, and gives it its first words.
    pub(super) fn take_from_stock(
        &self,
        id: SandboxId,
        stored: &Stored,
        opening: &[u8],
    ) -> Result<Made, NativeError> {
        let ware = match self.stock.take(&stored.plan) {
            Some(ware) if !ends_within(&ware.launched.process, Duration::ZERO) => ware,
            dead => {
                dead.into_iter().for_each(|ware| self.discard(ware));
                self.make_ware(self.stock.next_id(), stored.clone())?
            }
        };
        let folder = Folder::of(&self.home, id);
        if let Err(error) = Folder::in_stock(&self.home, ware.id).rename(&folder) {
            self.discard(ware);
            return Err(error);
        }
        let Ware { id: own, stored: old, launched, mut conversation, .. } = ware;
        self.captures.let_go(own);
        folder.redress(&old.plan.parts, &stored.plan.parts, &self.layers)?;
        folder.update(&old, stored)?;
        self.stock.lend(id, &folder, stored);
        conversation.write_all(opening).map_err(NativeError::Talk)?;
        Ok(Made::new(stored, launched, conversation))
    }

    /// Takes the folder of a sandbox that is gone back, if it is as good as new. `false`: it must be removed.
    ///
    /// Its init may still be `ending`.
    pub(super) fn put_away(&self, id: SandboxId, ending: Option<OwnedFd>) -> bool {
        let folder = Folder::of(&self.home, id);
        let Some(stored) = self.stock.give_back(id, &folder) else { return false };
        let spent = Folder::in_stock(&self.home, self.stock.next_id());
        if folder.rename(&spent).is_err() {
            return false;
        }
        if let Some(surplus) = self.stock.keep_spent(spent, stored, ending) {
            remove(&surplus);
        }
        true
    }

    fn restock(&self) -> Result<(), NativeError> {
        let Some((stored, making)) = self.stock.begin() else { return Ok(()) };
        let id = self.stock.next_id();
        if let Some(frozen) = &stored.frozen
            && !self.captures.adopt_current(id, frozen)?
        {
            // The workspace has moved on; the next order makes its own.
            return Ok(());
        }
        let ware = self.make_ware(id, stored).inspect_err(|_| self.captures.let_go(id))?;
        let surplus = if ware.launched.is_outdated { Some(ware) } else { making.done(ware) };
        surplus.into_iter().for_each(|ware| self.discard(ware));
        Ok(())
    }

    /// On error nothing is left behind.
    fn make_ware(&self, id: SandboxId, stored: Stored) -> Result<Ware, NativeError> {
        let folder = Folder::in_stock(&self.home, id);
        match self.launch_in_stock(&folder, &stored) {
            Ok((launched, conversation)) => {
                Ok(Ware { id, stored, launched, conversation, made: Instant::now() })
            }
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    fn launch_in_stock(
        &self,
        folder: &Folder,
        stored: &Stored,
    ) -> Result<(Launched, StdStream), NativeError> {
        match self.stock.take_spent(stored) {
            Some(Spent { folder: spent, stored: old, ending: _ }) => {
                spent.rename(folder)?;
                folder.refresh(&old.plan.parts, &stored.plan.parts, &self.layers)?;
                folder.update(&old, stored)?;
            }
            None => {
                folder.make()?;
                folder.write(stored)?;
            }
        }
        self.launch(folder, stored, None, Beginning::default())
    }

    /// Ends what is in stock of a workspace that has changed. Whoever waits for the change need not wait for that end.
    pub(super) fn clear_stock_of(&self, workspace: &Path) {
        let of =
            |ware: &Ware| ware.stored.frozen.as_ref().is_some_and(|frozen| frozen.workspace == workspace);
        while let Some(Ware { id, stored, launched, .. }) = self.stock.take_if(of) {
            kill(&launched);
            self.captures.let_go(id);
            let folder = Folder::in_stock(&self.home, id);
            if let Some(surplus) = self.stock.keep_spent(folder, stored, Some(launched.process)) {
                remove(&surplus);
            }
        }
    }

    /// Ends everything in stock.
    pub(super) fn close_stock(&self) {
        self.stock.close();
        self.empty_stock();
    }

    fn empty_stock(&self) {
        self.clear_stock(|_| true);
        self.stock.drop_spent().iter().for_each(remove);
    }

    fn clear_stock(&self, unwanted: impl Fn(&Ware) -> bool) {
        while let Some(ware) = self.stock.take_if(&unwanted) {
            self.discard(ware);
        }
    }

    fn discard(&self, ware: Ware) {
        let Ware { id, launched, .. } = ware;
        kill(&launched);
        wait_for_end(&launched.process);
        self.captures.let_go(id);
        remove(&Folder::in_stock(&self.home, id));
    }
}

/// Removes what an earlier daemon had in stock. Its processes ended with that one.
pub(super) fn sweep(home: &Path) -> Result<(), NativeError> {
    let path = home.join("stock");
    let failed = |source| NativeError::Read { path: path.clone(), source };
    for entry in fs::read_dir(&path).map_err(failed)? {
        remove(&Folder(entry.map_err(failed)?.path()));
    }
    Ok(())
}

fn kill(launched: &Launched) {
    // Already gone is as good.
    rustix::process::pidfd_send_signal(&launched.process, Signal::KILL).unwrap_or_default();
}

fn remove(folder: &Folder) {
    if let Err(error) = folder.remove() {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "a folder of the stock stays behind until the next start");
    }
}

fn wait_for_end(process: &OwnedFd) {
    if !ends_within(process, ENDING) {
        tracing::warn!("a sandbox that was killed does not end");
    }
}

fn ends_within(process: &OwnedFd, span: Duration) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    poll(&mut fds, Some(&span)).is_ok_and(|ready| ready > 0)
}
