//! Telling what changes in a folder, for as long as somebody listens.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::exec::FrameKind;
use model::files::{Change, ChangeKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::Wire;
use super::entry::look;
use super::fault::Fault;
use super::list::{HEAVY, weigh};
use crate::init::user::Names;

#[derive(Clone, Copy, Debug)]
pub(super) struct Watched<'a> {
    pub(super) root: &'a Path,
    pub(super) recursive: bool,
    pub(super) entries: bool,
}

/// Returns when the caller has left.
pub(super) fn watch(wire: &mut Wire, watched: &Watched<'_>) -> Result<(), Fault> {
    let mut watch = Watch::begin(watched)?;
    wire.send(FrameKind::Answer, &())?;
    loop {
        {
            let mut waited = [
                PollFd::new(&wire.stream, PollFlags::IN | PollFlags::RDHUP),
                PollFd::new(&watch.inotify, PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            // There is nothing that a caller could say but that it leaves.
            if !waited[0].revents().is_empty() {
                return Ok(());
            }
        }
        let happened = watch.take()?;
        for batch in watch.told(happened) {
            wire.send(FrameKind::Answer, &batch)?;
        }
    }
}

struct Watch<'a> {
    of: &'a Watched<'a>,
    inotify: OwnedFd,
    /// The folders that are watched, relative to the root.
    folders: HashMap<i32, PathBuf>,
    /// What was found in new folders, whose making may still be in the queue.
    found: HashSet<PathBuf>,
}

/// Something that happened, relative to the root.
#[derive(Debug, PartialEq, Eq)]
struct Happened {
    path: PathBuf,
    kind: ChangeKind,
}

impl<'a> Watch<'a> {
    fn begin(of: &'a Watched<'a>) -> Result<Self, Fault> {
        if !fs::metadata(of.root)?.is_dir() {
            return Err(Fault::NotFolder);
        }
        let inotify = match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
            Err(Errno::MFILE) => return Err(Fault::Watches { most: MOST_FOLDERS }),
            other => other?,
        };
        let mut watch = Self { of, inotify, folders: HashMap::new(), found: HashSet::new() };
        let flags = EVENTS | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        watch.add(PathBuf::new(), flags)?;
        if of.recursive {
            watch.descend(Path::new(""), |_found| ())?;
        }
        Ok(watch)
    }

    /// Watches the folders in a folder, and those in them. Links are not followed.
    fn descend(&mut self, folder: &Path, mut seen: impl FnMut(&Path)) -> Result<(), Fault> {
        let mut pending = vec![folder.to_owned()];
        while let Some(folder) = pending.pop() {
            // One that may not be read, or was removed meanwhile, has nothing to tell.
            let Ok(entries) = fs::read_dir(self.of.root.join(&folder)) else { continue };
            for entry in entries.flatten() {
                let path = folder.join(entry.file_name());
                seen(&path);
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                // Before it is read, so that nothing is missed.
                if is_folder && self.add(path.clone(), EVENTS)? {
                    pending.push(path);
                }
            }
        }
        Ok(())
    }

    /// `false`: it is not there any more, or may not be watched.
    fn add(&mut self, folder: PathBuf, flags: WatchFlags) -> Result<bool, Fault> {
        if self.folders.len() >= MOST_FOLDERS {
            return Err(Fault::Watches { most: MOST_FOLDERS });
        }
        let is_root = folder.as_os_str().is_empty();
        let flags = if is_root { flags } else { flags | WatchFlags::DONT_FOLLOW };
        match inotify::add_watch(&self.inotify, self.of.root.join(&folder), flags | WatchFlags::ONLYDIR) {
            Ok(number) => {
                self.folders.insert(number, folder);
                Ok(true)
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if !is_root => Ok(false),
            Err(Errno::NOSPC) => Err(Fault::Watches { most: MOST_FOLDERS }),
            Err(error) => Err(error.into()),
        }
    }

    /// All that is in the queue now, within reason.
    fn take(&mut self) -> Result<Vec<Happened>, Fault> {
        let mut happened = Vec::new();
        while happened.len() < MANY {
            let events = read(&self.inotify)?;
            if events.is_empty() {
                self.found.clear();
                break;
            }
            for event in events {
                self.hear(event, &mut happened)?;
            }
        }
        Ok(happened)
    }

    fn hear(&mut self, event: Event, happened: &mut Vec<Happened>) -> Result<(), Fault> {
        let Event { watch, flags, name } = event;
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Err(Fault::Overflow);
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.folders.remove(&watch);
            return Ok(());
        }
        let Some(folder) = self.folders.get(&watch) else { return Ok(()) };
        let is_itself = name.is_none();
        let path = name.map_or_else(|| folder.clone(), |name| folder.join(name));
        // What happens to a folder itself is told by the one above it, but for the root.
        if is_itself && !path.as_os_str().is_empty() {
            return Ok(());
        }
        let is_folder = flags.contains(ReadFlags::ISDIR) && !is_itself;
        if is_folder && flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE) {
            self.forget(&path);
        }
        let is_known = flags.contains(ReadFlags::CREATE) && self.found.remove(&path);
        if let Some(kind) = kind(flags).filter(|_| !is_known) {
            happened.push(Happened { path: path.clone(), kind });
        }
        if is_folder
            && self.of.recursive
            && flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            && !is_known
        {
            let mut found = Vec::new();
            if self.add(path.clone(), EVENTS)? {
                self.descend(&path, |path| found.push(path.to_owned()))?;
            }
            // Made before it was watched: nobody else tells of it.
            for path in found {
                happened.push(Happened { path: path.clone(), kind: ChangeKind::Create });
                self.found.insert(path);
            }
        }
        Ok(())
    }

    /// A folder that is not here any more, and those in it.
    fn forget(&mut self, gone: &Path) {
        let watches: Vec<i32> = self
            .folders
            .iter()
            .filter(|(_, folder)| folder.starts_with(gone))
            .map(|(watch, _)| *watch)
            .collect();
        for watch in watches {
            self.folders.remove(&watch);
            // The kernel removes the watch of a deleted folder by itself.
            inotify::remove_watch(&self.inotify, watch).unwrap_or_default();
        }
    }

    /// As it is told, in messages that are not too long.
    fn told(&self, happened: Vec<Happened>) -> Vec<Vec<Change>> {
        let names = if self.of.entries && !happened.is_empty() { Some(Names::read()) } else { None };
        let (mut batches, mut batch, mut weight) = (Vec::new(), Vec::new(), 0);
        for Happened { path, kind } in happened {
            let is_there = matches!(kind, ChangeKind::Create | ChangeKind::Write | ChangeKind::Chmod);
            // It may be gone again.
            let entry = names
                .as_ref()
                .filter(|_| is_there)
                .and_then(|names| look(&self.of.root.join(&path), names).ok());
            weight += 64 + 4 * path.as_os_str().len() + entry.as_ref().map_or(0, weigh);
            let name = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
            batch.push(Change { name: name.into(), kind, entry });
            if weight > HEAVY {
                batches.push(std::mem::take(&mut batch));
                weight = 0;
            }
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }
}

struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Option<OsString>,
}

/// A bufferful of events; none if there are none now.
fn read(inotify: &OwnedFd) -> Result<Vec<Event>, Fault> {
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = inotify::Reader::new(inotify.as_fd(), &mut buffer);
    let mut events = Vec::new();
    loop {
        if !events.is_empty() && reader.is_buffer_empty() {
            return Ok(events);
        }
        match reader.next() {
            Ok(event) => events.push(Event {
                watch: event.wd(),
                flags: event.events(),
                name: event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()),
            }),
            Err(Errno::AGAIN) => return Ok(events),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn kind(flags: ReadFlags) -> Option<ChangeKind> {
    let kinds = [
        (ReadFlags::CREATE | ReadFlags::MOVED_TO, ChangeKind::Create),
        (ReadFlags::MODIFY, ChangeKind::Write),
        (ReadFlags::DELETE | ReadFlags::DELETE_SELF, ChangeKind::Remove),
        (ReadFlags::MOVED_FROM | ReadFlags::MOVE_SELF, ChangeKind::Rename),
        (ReadFlags::ATTRIB, ChangeKind::Chmod),
    ];
    kinds.into_iter().find(|(which, _)| flags.intersects(*which)).map(|(_, kind)| kind)
}

const EVENTS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);
/// As many as Linux allows an ordinary user where nobody changed that.
const MOST_FOLDERS: usize = 8192;
/// Told at once; the rest waits in the kernel's queue, which has a size.
const MANY: usize = 4096;
