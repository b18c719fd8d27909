//! From what becomes of each path to as few moves as possible: a folder comes, or goes, in one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::exec::Text;
use model::files::FileKind;

use super::PromoteError;
use super::assess::{Fate, Outcome, Stay};
use super::garb::{Dress, Garb, now};
use super::judge::{Bytes, changed_since};
use super::links::Anchors;
use super::moves::Tree;
use super::reality::{Now, Reality, Spot};
use super::sprout::{Matter, Sprout};
use crate::diff::{Both, Comparison};
use crate::launcher::Rights;

/// Everything that is to be done.
#[derive(Debug, Default)]
pub(super) struct Work<'a> {
    pub(super) intents: Vec<Intent<'a>>,
    pub(super) dresses: Vec<Dress>,
    /// Real files that get further names.
    pub(super) anchors: Anchors,
}

/// One path that gets something else, with all that is below it.
#[derive(Debug)]
pub(super) struct Intent<'a> {
    pub(super) spot: Spot,
    /// What is there, as it was assessed.
    pub(super) was: Option<Tree>,
    /// What is to be there: first the thing itself, then what is in it. Nothing: it goes.
    pub(super) becomes: Vec<Sprout<'a>>,
}

impl Work<'_> {
    /// Contents that neither side has.
    pub(super) fn merged(&self) -> impl Iterator<Item = (Spot, &[u8])> {
        let sprouts = self
            .intents
            .iter()
            .flat_map(|intent| intent.becomes.iter().map(|sprout| (sprout.spot(&intent.spot), sprout)));
        sprouts.filter_map(|(spot, sprout)| match &sprout.matter {
            Matter::Merged(bytes) => Some((spot, bytes.as_slice())),
            Matter::Version(_) | Matter::Reality(_) | Matter::Folder | Matter::Link(_) => None,
        })
    }
}

/// Lets what stays in reality keep the folder it is in, and what does not come keep its contents away.
pub(super) fn settle(outcomes: &mut BTreeMap<PathBuf, Outcome<'_>>) {
    // Backwards, all that is in a folder comes right before it, so the last that was kept tells.
    let mut kept: Option<PathBuf> = None;
    for (path, outcome) in outcomes.iter_mut().rev() {
        let holds_kept = kept.as_ref().is_some_and(|kept| kept.starts_with(path));
        let goes = !outcome.fate.stays()
            && outcome.now.is_folder()
            && kind_to_be(outcome) != Some(FileKind::Directory);
        if goes && holds_kept {
            outcome.fate = Fate::Stay(Stay::Kept);
        }
        if outcome.fate.stays() && outcome.now.real().is_some() {
            kept = Some(path.clone());
        }
    }
    let mut closed: Option<PathBuf> = None;
    for (path, outcome) in outcomes.iter_mut() {
        if closed.as_ref().is_some_and(|closed| path.starts_with(closed)) {
            if !outcome.fate.stays() {
                outcome.fate = Fate::Stay(Stay::Kept);
            }
            continue;
        }
        // It does not become the folder, or does not become the file, that the sandbox made of it.
        let after = outcome.both.after.as_ref().map(|after| after.entry.kind == FileKind::Directory);
        let is_closed = match after {
            Some(true) => !outcome.now.is_folder(),
            Some(false) => outcome.now.is_folder(),
            None => false,
        };
        closed = (outcome.fate.stays() && is_closed).then(|| path.clone());
    }
}

pub(super) fn plan<'a>(
    comparison: &'a Comparison,
    reality: &Reality,
    rights: Rights,
    since: Timestamp,
    mut outcomes: BTreeMap<PathBuf, Outcome<'a>>,
    anchors: Anchors,
) -> Result<Work<'a>, PromoteError> {
    bring_folders(comparison, reality, &mut outcomes)?;
    let outcomes: Vec<(PathBuf, Outcome<'a>)> = outcomes.into_iter().collect();
    let mut folders = Folders { comparison, reality, since, dresses: BTreeMap::new() };
    let mut intents = Vec::new();
    let mut at = 0;
    while at < outcomes.len() {
        let (path, top) = &outcomes[at];
        let failed = |source| PromoteError::looked(path.clone(), source);
        at += 1;
        if top.fate.stays() {
            continue;
        }
        let kind = kind_to_be(top);
        if kind == Some(FileKind::Directory) && top.now.is_folder() {
            let garb = garb(top, reality, rights).map_err(failed)?;
            folders.dress(path, &top.spot, garb).map_err(failed)?;
            continue;
        }
        let below = outcomes[at..].iter().take_while(|(below, _)| below.starts_with(path)).count();
        let all = &outcomes[at - 1..at + below];
        at += below;
        if kind.is_none() && top.now.real().is_none() {
            continue;
        }
        intents.push(intent(all, reality, rights)?);
        if let Some(parent) = top.spot.parent() {
            folders.touch(&parent).map_err(failed)?;
        }
    }
    Ok(Work { intents, dresses: folders.dresses.into_values().collect(), anchors })
}

/// The folders that reality lacks for what is to come, as the sandbox has them.
fn bring_folders<'a>(
    comparison: &'a Comparison,
    reality: &Reality,
    outcomes: &mut BTreeMap<PathBuf, Outcome<'a>>,
) -> Result<(), PromoteError> {
    let homeless = outcomes.iter().filter(|(_, outcome)| {
        outcome.now == Now::FolderGone && !outcome.fate.stays() && outcome.both.after.is_some()
    });
    let homeless: Vec<PathBuf> = homeless.map(|(path, _)| path.clone()).collect();
    for path in homeless {
        for above in path.ancestors().skip(1) {
            let failed = |source| PromoteError::looked(above.to_owned(), source);
            if outcomes.contains_key(above) {
                continue;
            }
            let spot = reality.spot(above).expect("every absolute path is beneath `/`");
            let now = reality.look(&spot).map_err(failed)?;
            if now.is_folder() {
                break;
            }
            let Some((before, after)) = comparison.folder(above).map_err(failed)? else { break };
            let both = Both { area: crate::diff::Area::Workspace, before: Some(before), after: Some(after) };
            let outcome = Outcome { spot, both, now, fate: Fate::Ours, is_along: false };
            outcomes.insert(above.to_owned(), outcome);
        }
    }
    Ok(())
}

/// `all` starts with the path itself.
fn intent<'a>(
    all: &[(PathBuf, Outcome<'a>)],
    reality: &Reality,
    rights: Rights,
) -> Result<Intent<'a>, PromoteError> {
    let (_, top) = &all[0];
    let mut was = top.now.real().map(|real| Tree { top: real.stat, below: Vec::new() });
    let mut becomes = Vec::new();
    for (path, outcome) in all {
        let below = outcome.spot.below(&top.spot).expect("it was taken for being below");
        if let (Some(was), Some(real)) = (&mut was, outcome.now.real())
            && !below.is_empty()
        {
            was.below.push((Text(below.to_vec()), real.stat));
        }
        if let Some(matter) = matter(outcome) {
            let garb = garb(outcome, reality, rights);
            let garb = garb.map_err(|source| PromoteError::looked(path.clone(), source))?;
            becomes.push(Sprout { path: below.to_vec(), matter, garb });
        }
    }
    if let Some(was) = &mut was {
        was.below.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    Ok(Intent { spot: top.spot.clone(), was, becomes })
}

/// What it is to be; `None` if it goes.
fn kind_to_be(outcome: &Outcome<'_>) -> Option<FileKind> {
    match &outcome.fate {
        Fate::Stay(_) => outcome.now.real().map(|real| real.entry.kind),
        Fate::Ours => outcome.both.after.as_ref().map(|after| after.entry.kind),
        Fate::Blend(blend) => Some(blend.facts.kind),
    }
}

fn matter<'a>(outcome: &Outcome<'a>) -> Option<Matter<'a>> {
    let after = outcome.both.after.as_ref()?;
    let target = match &outcome.fate {
        Fate::Stay(_) => return None,
        Fate::Ours => after.entry.target.clone(),
        Fate::Blend(blend) => blend.facts.target.clone(),
    };
    Some(match (after.entry.kind, &outcome.fate) {
        (FileKind::Directory, _) => Matter::Folder,
        (FileKind::Symlink, _) => Matter::Link(target.unwrap_or_default()),
        (_, Fate::Blend(blend)) => match &blend.bytes {
            Bytes::Ours => Matter::Version(after.clone()),
            Bytes::Theirs => Matter::Reality(outcome.spot.clone()),
            Bytes::Merged(bytes) => Matter::Merged(bytes.clone()),
        },
        (_, Fate::Ours | Fate::Stay(_)) => Matter::Version(after.clone()),
    })
}

/// What it is to look like.
fn garb(outcome: &Outcome<'_>, reality: &Reality, rights: Rights) -> std::io::Result<Garb> {
    let after = outcome.both.after.as_ref().expect("only what comes is dressed");
    let ours = after.stat()?.map(|stat| stat.mtime);
    let mut garb = match &outcome.fate {
        Fate::Ours | Fate::Stay(_) => Garb::of_version(after, ours)?,
        Fate::Blend(blend) => {
            let mtime = match blend.bytes {
                Bytes::Ours => ours,
                Bytes::Theirs => outcome.now.real().map(|real| real.stat.mtime),
                // It is new.
                Bytes::Merged(_) => None,
            };
            Garb::of_facts(&blend.facts, &after.entry, mtime)
        }
    };
    if let Rights::User { .. } = rights {
        // In a sandbox of an ordinary user everything is theirs and of their group. Outside it may belong to another of
        // their groups: that of the file before, or of the folder that hands its group on.
        let group = match (outcome.now.real(), reality.parent(&outcome.spot)) {
            (Some(real), _) => Some(real.stat.gid),
            (None, Ok((folder, _))) => {
                let stat = rustix::fs::fstat(folder)?;
                (stat.st_mode & 0o2000 != 0).then_some(stat.st_gid)
            }
            (None, Err(_)) => None,
        };
        garb.gid = group.unwrap_or(garb.gid);
    }
    Ok(garb)
}

/// The folders that stay and are touched.
struct Folders<'b> {
    comparison: &'b Comparison,
    reality: &'b Reality,
    since: Timestamp,
    dresses: BTreeMap<Spot, Dress>,
}

impl Folders<'_> {
    /// Something in it moves. It gets the time it has in the sandbox, if nothing else moved in it meanwhile.
    fn touch(&mut self, spot: &Spot) -> std::io::Result<()> {
        let path = self.reality.absolute(spot);
        if !self.dresses.contains_key(spot)
            && let Some(dress) = self.undressed(&path, spot)?
        {
            self.dresses.insert(spot.clone(), dress);
        }
        Ok(())
    }

    fn dress(&mut self, path: &Path, spot: &Spot, garb: Garb) -> std::io::Result<()> {
        if let Some(mut dress) = self.undressed(path, spot)? {
            dress.after = Garb { mtime: dress.after.mtime, ..garb };
            self.dresses.insert(spot.clone(), dress);
        }
        Ok(())
    }

    fn undressed(&self, path: &Path, spot: &Spot) -> std::io::Result<Option<Dress>> {
        let Now::Present(real) = self.reality.look(spot)? else { return Ok(None) };
        let before = Garb::of_reality(&self.reality.open_entry(spot)?, &real.stat)?;
        let mtime = match self.comparison.folder(path)? {
            Some((was, is)) => {
                let untouched = if was.is_live()? {
                    !changed_since(&real.stat, self.since)
                } else {
                    was.stat()?.is_some_and(|was| was.mtime == real.stat.mtime)
                };
                is.stat()?.filter(|_| untouched).map(|is| is.mtime)
            }
            None => None,
        };
        // Otherwise that of now, said outright: undoing must recognise it.
        let after = Garb { mtime: Some(mtime.unwrap_or_else(now)), ..before.clone() };
        Ok(Some(Dress { spot: spot.clone(), ino: real.stat.ino, before, after }))
    }
}
