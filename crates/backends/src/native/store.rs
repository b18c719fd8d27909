//! A sandbox's folder: what is in it, and how it is made and removed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use engine::capture::Frozen;
use engine::layers::Layers;
use engine::view::{Part, Plan};
use jiff::Timestamp;
use model::caveat::CaveatKind;
use model::limits::Defaults;
use model::net::Wiring;
use model::sandbox::{CreateRequest, Masked};
use model::{Caveat, LayerId, SandboxId};
use serde::{Deserialize, Serialize};

use super::boot::Boot;
use super::limits::Enforced;
use super::problem::NativeError;

/// Everything needed to start the sandbox again or to find it after a restart. Only grows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) plan: Plan,
    pub(super) frozen: Option<Frozen>,
    pub(super) masked: Vec<Masked>,
    pub(super) caveats: Vec<Caveat>,
    /// The sealed layers it stands on, top first.
    #[serde(default)]
    pub(super) layers: Vec<LayerId>,
    /// Since when it relies on what it reads live. Written down when it is sealed: whatever is made of that relies on it since
    /// then, too, however much later it is made. None: it was never sealed, or by a zeno that did not know this.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// Absolute paths that it keeps although they have changed in reality since.
    #[serde(default)]
    pub(super) disputed: Vec<PathBuf>,
    /// Which of its upper folders it writes to. Grows with every one that is sealed or left behind.
    #[serde(default)]
    pub(super) turn: u32,
    /// The boot of the machine in which its processes were made last, until what they wrote is known to be on the disk.
    #[serde(default)]
    pub(super) ran_in: Option<Boot>,
}

impl Stored {
    /// The same, but perhaps for the moment at which it was found to be so.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        let generation = |stored: &Self| stored.frozen.as_ref().map(|frozen| frozen.generation);
        self.plan == other.plan
            && generation(self) == generation(other)
            && self.masked == other.masked
            && self.caveats == other.caveats
            && self.layers == other.layers
            && self.since == other.since
            && self.disputed == other.disputed
            && self.turn == other.turn
            && self.ran_in == other.ran_in
    }

    /// The same, of a sandbox made then, to be kept: it says since when it relies on what it reads live.
    pub(super) fn sealed(self, made: Timestamp) -> Self {
        let taken = self.frozen.as_ref().map(|frozen| frozen.taken);
        let since = self.since.or(taken).unwrap_or(made);
        Self { since: Some(since), turn: FIRST_TURN, ran_in: None, ..self }
    }

    /// Puts it under these limits, with this network: those of the sandbox it comes from may have been others.
    pub(super) fn bind(&mut self, request: &CreateRequest, enforced: &Enforced) {
        let wiring = request.net.wiring();
        if self.plan.net != wiring {
            self.caveats.retain(|caveat| caveat.kind != CaveatKind::Network);
            let unfiltered = Caveat::new(CaveatKind::Network, "it uses the host's network, unfiltered");
            self.caveats.extend((wiring == Wiring::Host).then_some(unfiltered));
        }
        self.plan.net = wiring;
        self.plan.pids = request.limits.pids.unwrap_or(Defaults::PIDS).into();
        self.plan.disk = request.limits.disk.map(|size| size.0);
        self.plan.disk_kind = enforced.disk_kind;
        for caveat in &enforced.caveats {
            if !self.caveats.contains(caveat) {
                self.caveats.push(caveat.clone());
            }
        }
    }

    /// Whatever it is taken back to, a sandbox stays under its own limits, with its own network.
    pub(super) fn keep_terms(&mut self, own: &Plan) {
        let Plan { hostname: _, root: _, parts: _, net, nested, pids, disk, disk_kind } = own;
        (self.plan.net, self.plan.nested) = (*net, *nested);
        (self.plan.pids, self.plan.disk, self.plan.disk_kind) = (*pids, *disk, *disk_kind);
    }

    /// The name of the folder that takes what the sandbox writes.
    pub(super) fn upper(&self) -> String {
        upper(self.turn)
    }
}

/// The folder of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn of(home: &Path, id: SandboxId) -> Self {
        Self(home.join("sandboxes").join(id.to_string()))
    }

    /// The folder of one that is nobody's yet.
    pub(super) fn in_stock(home: &Path, id: SandboxId) -> Self {
        Self(home.join("stock").join(id.to_string()))
    }

    pub(super) fn rename(&self, to: &Self) -> Result<(), NativeError> {
        fs::rename(&self.0, &to.0).map_err(|source| NativeError::MakeFolder { path: to.0.clone(), source })
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Where its disk is kept in its turn, if it has one of its own.
    pub(super) fn image(&self, turn: u32) -> PathBuf {
        self.0.join(image(turn))
    }

    /// Where what it writes goes, in its turn.
    pub(super) fn upper(&self, turn: u32) -> PathBuf {
        self.0.join(upper(turn))
    }

    /// The number of the last command it had when its processes were last ended on purpose; 0 if it had none.
    pub(super) fn last_exec(&self) -> Result<u32, NativeError> {
        let path = self.0.join(LAST_EXEC);
        let failed = |source| NativeError::Read { path: path.clone(), source };
        match fs::read_to_string(&path) {
            Ok(text) => text.parse().map_err(io::Error::other).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }

    pub(super) fn write_last_exec(&self, number: u32) -> Result<(), NativeError> {
        let path = self.0.join(LAST_EXEC);
        // In one go: half a number is another one.
        let new = self.0.join(format!("{LAST_EXEC}.new"));
        let written = fs::write(&new, number.to_string()).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| NativeError::Write { path, source })
    }

    pub(super) fn make(&self) -> Result<(), NativeError> {
        make_folder(&self.0)
    }

    /// Makes the upper and work folders of every part. An upper that is there already is kept; work is scratch.
    pub(super) fn make_parts(&self, stored: &Stored, layers: &Layers) -> Result<(), NativeError> {
        let all = self.upper(stored.turn);
        make_folder(&all)?;
        let work = self.0.join("work");
        make_folder(&work)?;
        for part in &stored.plan.parts {
            let upper = all.join(&part.name);
            match fs::create_dir(&upper) {
                Ok(()) => layers.dress(&upper, part, &stored.layers)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(NativeError::MakeFolder { path: upper, source }),
            }
            make_folder(&work.join(&part.name))?;
        }
        Ok(())
    }

    /// Brings the top folders up to date, where they differ from those they were made for.
    pub(super) fn redress(&self, old: &[Part], new: &[Part], layers: &Layers) -> Result<(), NativeError> {
        for (_, part) in old.iter().zip(new).filter(|(old, new)| old.top != new.top) {
            layers.dress(&self.upper(FIRST_TURN).join(&part.name), part, &[])?;
        }
        Ok(())
    }

    /// Makes the folder of a sandbox that wrote nothing fit for the next one.
    pub(super) fn refresh(&self, old: &[Part], new: &[Part], layers: &Layers) -> Result<(), NativeError> {
        let failed = |path: &Path, source| NativeError::Remove { path: path.to_owned(), source };
        let socket = self.0.join("control.sock");
        fs::remove_file(&socket).map_err(|source| failed(&socket, source))?;
        for part in new {
            let work = self.0.join("work").join(&part.name).join("work");
            remove_mark(&work).map_err(|source| failed(&work, source))?;
        }
        self.redress(old, new, layers)
    }

    /// Removes what overlayfs left of the last run: without this a volatile upper is not mounted again.
    pub(super) fn clear_scratch(&self) -> Result<(), NativeError> {
        for name in ["work", "control.sock"] {
            let path = self.0.join(name);
            let removed = match fs::symlink_metadata(&path) {
                Ok(stat) if stat.is_dir() => engine::remove::tree(&path),
                Ok(_) => fs::remove_file(&path),
                Err(_) => Ok(()),
            };
            removed.map_err(|source| NativeError::Remove { path, source })?;
        }
        Ok(())
    }

    pub(super) fn write(&self, stored: &Stored) -> Result<(), NativeError> {
        let path = self.plan();
        let failed = |source| NativeError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(stored).map_err(|source| failed(source.into()))?;
        fs::write(&path, text).map_err(failed)
    }

    /// Writes over what was there: whoever reads, whatever happens meanwhile, finds the old or the new.
    pub(super) fn replace(&self, stored: &Stored) -> Result<(), NativeError> {
        let (path, next) = (self.plan(), self.0.join("plan.json.next"));
        let failed = |source| NativeError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(stored).map_err(|source| failed(source.into()))?;
        // Half a plan, as a power cut may leave of one that was not brought to the disk first, would lose the sandbox. What
        // the sandbox wrote is not waited for: that takes longer for a lot than for a little.
        let replaced = fs::File::create(&next)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&next, &path))
            .and_then(|()| fs::File::open(&self.0)?.sync_all());
        replaced.map_err(failed)
    }

    /// Writes down that all it wrote is on the disk, and brings that there, too.
    pub(super) fn note_synced(&self) -> Result<(), NativeError> {
        self.replace(&Stored { ran_in: None, ..self.read()? })?;
        let path = self.plan();
        let synced = fs::File::open(&path).and_then(|plan| plan.sync_all());
        synced.map_err(|source| NativeError::Write { path, source })
    }

    /// Finishes what was begun when the daemon ended: an upper that is to be a layer and is none yet, or one that was
    /// left behind.
    pub(super) fn settle(&self, layers: &Layers) -> Result<Stored, NativeError> {
        let stored = self.read()?;
        if let Some((top, below)) = stored.layers.split_first()
            && !layers.has(*top)
            && let Some(last) = stored.turn.checked_sub(1).map(|turn| self.upper(turn))
            && last.is_dir()
        {
            layers.seal(&last, *top, &stored.plan, below)?;
        }
        self.drop_leftovers(&stored, layers)?;
        Ok(stored)
    }

    /// Throws away upper folders that are nobody's turn any more.
    fn drop_leftovers(&self, stored: &Stored, layers: &Layers) -> Result<(), NativeError> {
        let current = [stored.upper(), image(stored.turn)];
        let failed = |source| NativeError::Read { path: self.0.clone(), source };
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let is_written =
                [&b"upper"[..], b"disk"].iter().any(|word| name.as_encoded_bytes().starts_with(word));
            if is_written && !current.iter().any(|current| name == current.as_str()) {
                layers.trash().take(&self.0.join(name))?;
            }
        }
        Ok(())
    }

    /// Writes what is new, if anything is.
    pub(super) fn update(&self, old: &Stored, new: &Stored) -> Result<(), NativeError> {
        if old.says_the_same_as(new) { Ok(()) } else { self.write(new) }
    }

    pub(super) fn read(&self) -> Result<Stored, NativeError> {
        let path = self.plan();
        let text = fs::read(&path).map_err(|source| NativeError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&text).map_err(|source| NativeError::Garbled { path, source })
    }

    /// The plan goes first: what is left of one that is half removed is never taken for what the sandbox wrote.
    pub(super) fn remove(&self) -> Result<(), NativeError> {
        let plan = self.plan();
        match fs::remove_file(&plan) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(NativeError::Remove { path: plan, source });
            }
            Ok(()) | Err(_) => {}
        }
        engine::remove::tree(&self.0).map_err(|source| NativeError::Remove { path: self.0.clone(), source })
    }

    pub(super) fn has_plan(&self) -> bool {
        self.plan().exists()
    }

    fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }
}

/// Every sandbox that has a folder.
pub(super) fn inventory(home: &Path) -> Result<Vec<SandboxId>, NativeError> {
    let path = home.join("sandboxes");
    let failed = |source| NativeError::Read { path: path.clone(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<SandboxId>().ok()));
    }
    Ok(found)
}

/// Removes the mark with which overlayfs would not mount a work folder again: it cannot know that nothing was lost.
fn remove_mark(work: &Path) -> io::Result<()> {
    // Of a part that was left out there is none.
    if !work.try_exists()? {
        return Ok(());
    }
    let incompatible = work.join("incompat");
    let mark = incompatible.join("volatile");
    if !rustix::process::geteuid().is_root() {
        // They show no permission at all, not even to their owner.
        for folder in [work, &incompatible, &mark] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
    }
    fs::remove_file(mark.join("dirty"))?;
    fs::remove_dir(mark)
}

fn make_folder(path: &Path) -> Result<(), NativeError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|source| NativeError::MakeFolder { path: path.to_owned(), source }),
    }
}

fn upper(turn: u32) -> String {
    if turn == FIRST_TURN { "upper".to_owned() } else { format!("upper.{turn}") }
}

fn image(turn: u32) -> String {
    if turn == FIRST_TURN { "disk.img".to_owned() } else { format!("disk.{turn}.img") }
}

pub(super) const FIRST_TURN: u32 = 0;
const LAST_EXEC: &str = "last-exec";
