//! What a promotion would make of reality, written as a layer to lie over it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, makedev, mkdirat, mknodat};
use rustix::io::Errno;

use super::PromoteError;
use super::assess::Assessed;
use super::garb::Garb;
use super::reality::Reality;
use super::sprout::{Files, Links, build};
use crate::capture::files::{DIRECTORY, join, look_at, open_beneath, split};
use crate::view::{Part, Plan};

impl Assessed<'_> {
    /// Writes the layer, a folder for each frozen part of the plan, into `folder`. Laid over what the plan freezes, which
    /// must not be newer than this assessment, it shows reality as it would be.
    pub fn lay(&self, plan: &Plan, folder: &Path) -> Result<(), PromoteError> {
        if !self.report.is_clear() {
            return Err(PromoteError::NotClear);
        }
        let mut beds: BTreeMap<&str, Bed<'_>> = BTreeMap::new();
        for intent in &self.work.intents {
            let path = self.reality.absolute(&intent.spot);
            let failed = |source| PromoteError::Build { path: path.clone(), source };
            let Some((bed, inside)) = bed(&mut beds, plan, folder, &path).map_err(failed)? else { continue };
            bed.make_way(split(&inside).0, &self.reality).map_err(failed)?;
            if intent.becomes.is_empty() {
                bed.hide(&inside).map_err(failed)?;
            } else {
                build(&intent.becomes, &self.reality, &bed.opened, &inside, &mut bed.files)
                    .map_err(failed)?;
            }
        }
        for dress in &self.work.dresses {
            let path = self.reality.absolute(&dress.spot);
            let failed = |source| PromoteError::Build { path: path.clone(), source };
            let Some((bed, inside)) = bed(&mut beds, plan, folder, &path).map_err(failed)? else { continue };
            bed.make_way(&inside, &self.reality).map_err(failed)?;
            bed.folders.insert(inside, dress.after.clone());
        }
        beds.values().try_for_each(Bed::finish)
    }
}

/// What is laid over one part.
struct Bed<'a> {
    part: &'a Part,
    opened: OwnedFd,
    files: Files,
    /// The folders on the way to what is laid, and what they are to look like.
    folders: BTreeMap<Vec<u8>, Garb>,
}

/// The bed a path belongs to, made if need be, and where in it the path lies. `None`: the path is not frozen.
fn bed<'b, 'a>(
    beds: &'b mut BTreeMap<&'a str, Bed<'a>>,
    plan: &'a Plan,
    folder: &Path,
    path: &Path,
) -> io::Result<Option<(&'b mut Bed<'a>, Vec<u8>)>> {
    let parts = plan.parts.iter().filter(|part| path.starts_with(&part.mountpoint));
    let Some(part) = parts.max_by_key(|part| part.mountpoint.components().count()) else { return Ok(None) };
    let Some(inner) = &part.inner else { return Ok(None) };
    if !beds.contains_key(part.name.as_str()) {
        let own = folder.join(&part.name);
        fs::create_dir(&own)?;
        let opened = rustix::fs::open(&own, DIRECTORY, Mode::empty())?;
        beds.insert(
            &part.name,
            Bed { part, opened, files: Files::Shared(Links::new()), folders: BTreeMap::new() },
        );
    }
    let shown = path.strip_prefix(&part.mountpoint).expect("it was filtered by this");
    let inside = join(inner.as_bytes(), shown.as_os_str().as_bytes());
    let inside = inside.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(inside);
    Ok(beds.get_mut(part.name.as_str()).map(|bed| (bed, inside)))
}

impl Bed<'_> {
    /// Makes a folder and all above it, as reality has them.
    fn make_way(&mut self, inside: &[u8], reality: &Reality) -> io::Result<()> {
        if inside.is_empty() || self.folders.contains_key(inside) {
            return Ok(());
        }
        let (above, name) = split(inside);
        self.make_way(above, reality)?;
        match mkdirat(open_beneath(&self.opened, above)?, name, Mode::RWXU) {
            // It came with what is laid there.
            Err(Errno::EXIST) => return Ok(()),
            other => other?,
        }
        let path = self.absolute(inside);
        let spot = reality.spot(&path).expect("every absolute path is beneath `/`");
        let opened = reality.folder(&spot)?;
        let garb = Garb::of_reality(&opened, &look_at(&opened)?.stat)?;
        self.folders.insert(inside.to_vec(), garb);
        Ok(())
    }

    /// Hides what lies below.
    fn hide(&self, inside: &[u8]) -> io::Result<()> {
        let (folder, name) = split(inside);
        let folder = open_beneath(&self.opened, folder)?;
        Ok(mknodat(&folder, name, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?)
    }

    /// Dresses the folders, the deepest first: what is made in one changes its time, and it may be read-only.
    fn finish(&self) -> Result<(), PromoteError> {
        for (inside, garb) in self.folders.iter().rev() {
            let dressed = open_beneath(&self.opened, inside).and_then(|folder| garb.put_on(&folder));
            dressed.map_err(|source| PromoteError::Dress { path: self.absolute(inside), source })?;
        }
        Ok(())
    }

    fn absolute(&self, inside: &[u8]) -> PathBuf {
        let inner = self.part.inner.as_deref().unwrap_or_default().as_bytes();
        let shown = inside.strip_prefix(inner).unwrap_or(inside);
        let shown = shown.strip_prefix(b"/").unwrap_or(shown);
        let shown = Path::new(std::ffi::OsStr::from_bytes(shown));
        if shown.as_os_str().is_empty() {
            self.part.mountpoint.clone()
        } else {
            self.part.mountpoint.join(shown)
        }
    }
}
