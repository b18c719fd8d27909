//! Files with several names: what is one file in the sandbox is to be one in reality, too.
//!
//! Names that come are built as one file. Where one of them stays as it is, because the sandbox left its contents alone,
//! the others become further names of the real file. Which names are one file is no change by itself, just as times are not:
//! where nothing else changed, nothing is promoted. Of a file that had several names from the start, one that goes with a moved
//! folder and one that stays become two: nobody knows the names that stay, and the real file itself is kept for undoing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::Caveat;
use model::caveat::CaveatKind;
use model::files::FileKind;
use model::promotion::Assessment;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::assess::{Fate, Outcome, Stay, told};
use super::judge::is_as;
use super::moves::is_same;
use super::reality::{Now, Reality, Spot};
use super::select::{is_git, is_masked, is_named};
use super::{Ask, PromoteError, Purpose};
use crate::capture::files::{Stat, look};
use crate::diff::{Area, Both, Shared, Version};
use crate::launcher::Rights;

/// A real file that stays, and of which others become further names.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    spot: Spot,
    stat: Stat,
}

/// By the file that the sandbox has.
pub(super) type Anchors = BTreeMap<Shared, Anchor>;

impl Anchor {
    /// Gives it another name. Says whether it did: not if somebody has changed it meanwhile, or the file system will not.
    pub(super) fn name_again(&self, reality: &Reality, folder: &OwnedFd, name: &[u8]) -> io::Result<bool> {
        let Ok((from, old)) = reality.parent(&self.spot) else { return Ok(false) };
        if !look(&from, old)?.is_some_and(|seen| is_same(&self.stat, &seen.stat)) {
            return Ok(false);
        }
        match rustix::fs::linkat(&from, old, folder, name, AtFlags::empty()) {
            Err(Errno::NOENT | Errno::XDEV | Errno::PERM | Errno::MLINK) => return Ok(false),
            other => other?,
        }
        // Another file may have taken its place between the look and the link.
        if look(folder, name)?.is_some_and(|seen| is_same(&self.stat, &seen.stat)) {
            return Ok(true);
        }
        rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
        Ok(false)
    }
}

/// What is needed to find out which names stay together.
pub(super) struct Names<'b, 'a> {
    pub(super) ask: &'b Ask<'a>,
    pub(super) reality: &'b Reality,
    pub(super) rights: Rights,
}

/// One file of the sandbox, some of whose names come.
#[derive(Debug, Default)]
struct Family<'a> {
    /// Names that stay, and have in reality what the sandbox has there.
    stay: Vec<(PathBuf, Anchor, Option<Both<'a>>)>,
    /// Names at which reality has something else.
    apart: Vec<PathBuf>,
}

impl<'a> Names<'_, 'a> {
    /// Finds the real files that names which come belong to, and tells where they cannot stay together.
    pub(super) fn keep_together(
        &self,
        outcomes: &mut BTreeMap<PathBuf, Outcome<'a>>,
        report: &mut Assessment,
    ) -> Result<Anchors, PromoteError> {
        let mut anchors = Anchors::new();
        let mut known: BTreeSet<Shared> = BTreeSet::new();
        let (mut along, mut apart) = (Vec::new(), Vec::new());
        for (path, outcome) in outcomes.iter() {
            let failed = |source| PromoteError::looked(path.clone(), source);
            let Some(version) = coming(outcome) else { continue };
            let Some(file) = version.shared().map_err(failed)? else { continue };
            if !known.insert(file) {
                continue;
            }
            let mut family = self.family(version, outcomes).map_err(failed)?;
            let mut stay = family.stay.into_iter();
            match self.ask.purpose {
                Purpose::Apply => {
                    if let Some((_, anchor, _)) = stay.next() {
                        let others = stay.filter(|(_, other, _)| other.stat.ino != anchor.stat.ino);
                        family.apart.extend(others.map(|(path, ..)| path));
                        anchors.insert(file, anchor);
                    }
                    apart.extend(family.apart.into_iter().map(|other| (path.clone(), other)));
                }
                // What lies over reality has to hold all of them to show them as one.
                Purpose::Preview | Purpose::Refresh => {
                    along.extend(stay.filter_map(|(path, anchor, both)| Some((path, anchor, both?))));
                }
            }
        }
        for (path, anchor, both) in along {
            let now = self.reality.look(&anchor.spot);
            let now = now.map_err(|source| PromoteError::looked(path.clone(), source))?;
            let outcome = Outcome { spot: anchor.spot, both, now, fate: Fate::Ours, is_along: true };
            outcomes.entry(path).or_insert(outcome);
        }
        report.caveats.extend(self.caveat(&apart));
        Ok(anchors)
    }

    fn family(
        &self,
        version: &Version<'a>,
        outcomes: &BTreeMap<PathBuf, Outcome<'a>>,
    ) -> io::Result<Family<'a>> {
        let mut family = Family::default();
        for name in version.names()? {
            match outcomes.get(&name) {
                Some(outcome) if coming(outcome).is_some() => {}
                Some(Outcome { fate: Fate::Stay(Stay::Same), spot, now: Now::Present(real), .. }) => {
                    let anchor = Anchor { spot: spot.clone(), stat: real.stat };
                    family.stay.push((name, anchor, None));
                }
                Some(_) => family.apart.push(name),
                None => match self.standing(&name, version)? {
                    Some((anchor, both)) => family.stay.push((name, anchor, Some(both))),
                    None => family.apart.push(name),
                },
            }
        }
        Ok(family)
    }

    /// What stands at a name that the sandbox left as it was, if that can get further names: nobody may get at a file
    /// under a new name that would not have been promoted under its old one.
    fn standing(&self, path: &Path, version: &Version<'_>) -> io::Result<Option<(Anchor, Both<'a>)>> {
        let Some(both) = self.ask.comparison.written(path)? else { return Ok(None) };
        let is_closed = both.area == Area::Machine && !is_named(path, self.ask);
        if is_closed || is_masked(path, self.ask) || is_git(path, both.area, self.ask) {
            return Ok(None);
        }
        let spot = self.reality.spot(path).expect("every absolute path is beneath `/`");
        let Now::Present(real) = self.reality.look(&spot)? else { return Ok(None) };
        let is_ours = match self.rights {
            Rights::User { uid, .. } => real.stat.uid == uid,
            Rights::Root => true,
        };
        let is_same = is_ours && !real.is_mount && is_as(version, &real, self.reality, &spot)?;
        Ok(is_same.then_some((Anchor { spot, stat: real.stat }, both)))
    }

    fn caveat(&self, apart: &[(PathBuf, PathBuf)]) -> Option<Caveat> {
        let shown = |path: &Path| format!("`{}`", told(self.ask.comparison, path).display());
        let (come, stays) = apart.first()?;
        let more = match apart.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more such"),
        };
        let text = format!(
            "{} and {} are one file in the sandbox and are two here{more}: what is not promoted, or has changed here \
             meanwhile, gets no further name.",
            shown(come),
            shown(stays),
        );
        Some(Caveat::new(CaveatKind::View, text))
    }
}

/// The file that comes as the sandbox has it.
fn coming<'b, 'a>(outcome: &'b Outcome<'a>) -> Option<&'b Version<'a>> {
    match outcome.fate {
        Fate::Ours => outcome.both.after.as_ref().filter(|after| after.entry.kind == FileKind::File),
        Fate::Stay(_) | Fate::Blend(_) => None,
    }
}
