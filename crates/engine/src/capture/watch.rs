//! Who changed since the last look: one inotify instance per frozen root.
//!
//! The kernel queues an event before the call that caused it returns, so draining the queue sees every change made
//! before. A thread empties the queue in between, lest it overflow.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::index::{DirId, Name};

/// The names in one directory that raised an event.
#[derive(Debug, Default)]
pub(super) struct Stir {
    /// Each with whether something new came to stand there.
    pub(super) names: BTreeMap<Name, bool>,
}

/// All that stirred since the last look.
#[derive(Debug)]
pub(super) enum Stirred {
    Dirs(BTreeMap<DirId, Stir>),
    /// The queue overflowed: anything may have changed.
    Anything,
}

#[derive(Debug)]
pub(super) struct Watch {
    inotify: Arc<OwnedFd>,
    queue: Arc<Mutex<Queue>>,
    dir_of: HashMap<i32, DirId>,
    watch_of: HashMap<DirId, i32>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    stirs: HashMap<i32, Stir>,
    names: usize,
    overflowed: bool,
}

impl Watch {
    pub(super) fn start() -> io::Result<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let queue = Arc::new(Mutex::new(Queue::default()));
        let thread = {
            let (inotify, stop, queue) = (inotify.clone(), stop.clone(), queue.clone());
            std::thread::Builder::new()
                .name("zeno-watch".into())
                .spawn(move || empty_until_stopped(&inotify, &stop, &queue))?
        };
        Ok(Self {
            inotify,
            queue,
            dir_of: HashMap::new(),
            watch_of: HashMap::new(),
            stop,
            thread: Some(thread),
        })
    }

    /// Watches an open directory. Call before its entries are read.
    pub(super) fn add(&mut self, id: DirId, dir: impl AsFd) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
        let watch = inotify::add_watch(&self.inotify, path, EVENTS)?;
        // A directory that was moved keeps its watch: the number now stands for the new place.
        if let Some(old) = self.dir_of.insert(watch, id)
            && old != id
        {
            self.watch_of.remove(&old);
        }
        if let Some(old) = self.watch_of.insert(id, watch)
            && old != watch
        {
            self.dir_of.remove(&old);
        }
        Ok(())
    }

    pub(super) fn has(&self, id: DirId) -> bool {
        self.watch_of.contains_key(&id)
    }

    pub(super) fn remove(&mut self, id: DirId) {
        let Some(watch) = self.watch_of.remove(&id) else { return };
        self.dir_of.remove(&watch);
        match inotify::remove_watch(&self.inotify, watch) {
            // The kernel removes the watch of a deleted directory by itself.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => tracing::debug!(%error, "remove a watch"),
        }
    }

    /// Everything that raised an event before this call.
    pub(super) fn drain(&mut self) -> io::Result<Stirred> {
        let mut queue = lock(&self.queue);
        queue.fill(&self.inotify)?;
        let taken = std::mem::take(&mut *queue);
        drop(queue);
        if taken.overflowed {
            return Ok(Stirred::Anything);
        }
        let mut dirs = BTreeMap::<DirId, Stir>::new();
        for (watch, stir) in taken.stirs {
            if let Some(id) = self.dir_of.get(&watch) {
                dirs.insert(*id, stir);
            }
        }
        Ok(Stirred::Dirs(dirs))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Err(error) = rustix::io::write(&self.stop, &1_u64.to_ne_bytes()) {
            tracing::debug!(%error, "stop a watch thread");
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a watch thread panicked");
        }
    }
}

impl Queue {
    /// Moves the kernel's queue here.
    fn fill(&mut self, inotify: &OwnedFd) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.overflowed = true;
            }
            if self.overflowed || flags.contains(ReadFlags::IGNORED) {
                continue;
            }
            let stir = self.stirs.entry(event.wd()).or_default();
            if let Some(name) = event.file_name() {
                let appeared = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                match stir.names.get_mut(name.to_bytes()) {
                    Some(known) => *known |= appeared,
                    None => {
                        stir.names.insert(name.to_bytes().into(), appeared);
                        self.names += 1;
                    }
                }
            }
            if self.names > MOST_NAMES {
                *self = Self { overflowed: true, ..Self::default() };
            }
        }
    }
}

fn empty_until_stopped(inotify: &OwnedFd, stop: &OwnedFd, queue: &Mutex<Queue>) {
    loop {
        let mut waited = [PollFd::new(inotify, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut waited, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return tracing::error!(%error, "wait for changes in a workspace"),
        }
        if !waited[1].revents().is_empty() {
            return;
        }
        if let Err(error) = lock(queue).fill(inotify) {
            return tracing::error!(%error, "read changes in a workspace");
        }
        // A busy writer would otherwise wake this thread for each of its writes.
        let mut waited = [PollFd::new(stop, PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) };
        if !matches!(poll(&mut waited, Some(&pause)), Ok(0) | Err(Errno::INTR)) {
            return;
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    // A queue left by a panicking thread may lack events.
    queue.lock().unwrap_or_else(|poisoned| {
        let mut queue = PoisonError::into_inner(poisoned);
        queue.overflowed = true;
        queue
    })
}

const EVENTS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);
const PAUSE: Duration = Duration::from_millis(10);
/// Beyond this a walk is cheaper than remembering names.
const MOST_NAMES: usize = 200_000;
