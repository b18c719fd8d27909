//! Two states side by side: what it takes to make the second of the first.
//!
//! Each is known by what it changed of what it started from, so the work is in proportion to the changes of both, never
//! to the tree. How either came about does not matter: every path is looked at as it stands on both sides.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::diff::{Between, By, Change, ChangeKind, Detail, Diff};
use model::exec::Text;
use model::files::FileKind;

use super::both::{Area, Both, Version};
use super::compare::{differing_names, same};
use super::patch::{self, Side};
use super::rename::{self, Loose};
use super::report::{put_in_order, readable, text};
use super::walk::Kind;
use super::{Comparison, DiffError};

/// Two states.
#[derive(Debug)]
pub struct Pair {
    one: Comparison,
    other: Comparison,
    base: Base,
    /// An earlier state on the same base: what each changed counts from there.
    since: Option<Comparison>,
    paths: Vec<PathBuf>,
}

/// What two states started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The same: where only one of them changed something, the other has what that one found.
    Shared,
    /// Different states of one workspace. Only what one of them changed is compared.
    Apart,
}

impl Pair {
    /// With `paths`, which are absolute, only what is at or below one of them is told. The comparisons are of everything:
    /// what moved has to be known on both sides.
    #[must_use]
    pub fn new(one: Comparison, other: Comparison, base: Base, paths: Vec<PathBuf>) -> Self {
        Self { one, other, base, since: None, paths }
    }

    /// The same, but what each of them changed counts from this state, which started from the same.
    #[must_use]
    pub fn since(self, since: Comparison) -> Self {
        Self { since: Some(since), ..self }
    }

    /// What differs, and which of the two changed it.
    pub fn between(&self, detail: Detail) -> Result<Between, DiffError> {
        let (steps, mut between) = self.steps()?;
        for step in steps {
            let is_machine = step.area == Area::Machine;
            let change = self.change(step, detail)?;
            let diff = &mut between.diff;
            if is_machine { diff.machine.push(change) } else { diff.workspace.push(change) }
        }
        put_in_order(&mut between.diff);
        Ok(between)
    }

    /// What differs, where nobody asks which of the two changed it: the first is an earlier state of the second.
    pub fn diff(&self, detail: Detail) -> Result<Diff, DiffError> {
        let mut diff = self.between(detail)?.diff;
        for change in diff.workspace.iter_mut().chain(&mut diff.machine) {
            change.by = None;
        }
        Ok(diff)
    }

    /// Writes what differs in the workspace as a patch for `git apply`, which makes the second of the first.
    pub fn patch(&self, out: &mut dyn Write) -> Result<(), DiffError> {
        let (mut steps, _) = self.steps()?;
        steps.retain(|step| step.area == Area::Workspace);
        steps.sort_by(|one, other| one.order().cmp(&other.order()));
        if self.base == Base::Apart {
            // Git passes over what stands before the first file.
            out.write_all(APART).map_err(DiffError::HandOn)?;
        }
        for step in steps {
            let mut text = Vec::new();
            self.write_step(&step, &mut text)
                .map_err(|source| DiffError::Read { path: step.path.clone(), source })?;
            out.write_all(&text).map_err(DiffError::HandOn)?;
        }
        Ok(())
    }

    fn write_step(&self, step: &Step<'_>, out: &mut dyn Write) -> io::Result<()> {
        let side = |path: &Path, version: Option<&Version<'_>>| match version {
            Some(version) => Side::of(&self.told(path, Area::Workspace).0, version),
            None => Ok(None),
        };
        let before = side(step.from.as_ref().unwrap_or(&step.path), step.before.as_ref())?;
        patch::between(before, side(&step.path, step.after.as_ref())?, out)
    }

    /// Every path that is not the same on both sides, and all that is said of them as a whole.
    fn steps(&self) -> Result<(Vec<Step<'_>>, Between), DiffError> {
        let (mut ours, mut theirs) = (self.one.both()?, self.other.both()?);
        let mut since = self.since.as_ref().map(Comparison::both).transpose()?;
        let mut between = Between { apart: self.base == Base::Apart, ..Between::default() };
        let mut unread: Vec<PathBuf> = self.one.unread().chain(self.other.unread()).collect();
        unread.retain(|path| self.is_asked(path));
        let (mut steps, mut git) = (Vec::new(), BTreeSet::new());
        for path in self.touched(&ours, &theirs) {
            let ends = self.ends(&path, ours.remove(&path), theirs.remove(&path));
            let compared = ends.and_then(|mut ends| {
                if let Some(since) = &mut since {
                    ends.count_since(since.remove(&path))?;
                }
                Ok((difference(ends.before.as_ref(), ends.after.as_ref())?, ends))
            });
            let (difference, ends) = match compared {
                // What vanished meanwhile is nobody's any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    unread.push(path);
                    continue;
                }
                other => other.map_err(|source| DiffError::Compare { path: path.clone(), source })?,
            };
            // Neither changed it since: then they are the same.
            let Some(by) = ends.by else { continue };
            if ends.area == Area::Workspace && !ends.is_folder {
                self.sum_up(&path, by, difference.is_some(), &mut between);
            }
            let Ends { area, by: _, is_folder: _, started: _, before, after } = ends;
            match difference {
                None => {}
                Some(_) if area == Area::Git => {
                    git.extend(before.iter().chain(&after).find_map(Version::git_folder));
                }
                Some(Difference { kind, contents, xattrs }) => {
                    steps.push(Step { path, from: None, area, by, kind, before, after, contents, xattrs });
                }
            }
        }
        let root = || self.one.workspace().unwrap_or(Path::new("/")).to_owned();
        pair_renamed(&mut steps).map_err(|source| DiffError::Compare { path: root(), source })?;
        between.diff.root = self.one.workspace().map(|root| Text::from(root.to_owned()));
        between.diff.git = git.into_iter().map(Text::from).collect();
        between.diff.unread = unread.into_iter().map(Text::from).collect();
        Ok((steps, between))
    }

    /// The paths that one of them changed.
    fn touched(
        &self,
        ours: &BTreeMap<PathBuf, Both<'_>>,
        theirs: &BTreeMap<PathBuf, Both<'_>>,
    ) -> BTreeSet<PathBuf> {
        let all = ours.keys().chain(theirs.keys());
        all.filter(|path| self.is_asked(path)).cloned().collect()
    }

    fn is_asked(&self, path: &Path) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|asked| path.starts_with(asked))
    }

    /// What stands at a path on both sides.
    fn ends<'a>(
        &'a self,
        path: &Path,
        ours: Option<Both<'a>>,
        theirs: Option<Both<'a>>,
    ) -> io::Result<Ends<'a>> {
        let (by, area) = match (&ours, &theirs) {
            // Ignored by one of them only, it is none the less a file that the other would commit.
            (Some(ours), Some(theirs)) if ours.area == Area::Ignored => (By::Both, theirs.area),
            (Some(ours), Some(_)) => (By::Both, ours.area),
            (Some(ours), None) => (By::One, ours.area),
            (None, Some(theirs)) => (By::Other, theirs.area),
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        let started = ours.as_ref().or(theirs.as_ref()).and_then(|both| both.before.clone());
        let untouched = |side: &'a Comparison| match (self.base, side.workspace()) {
            (Base::Apart, Some(workspace)) if path.starts_with(workspace) => side.started_from(path),
            (Base::Shared | Base::Apart, _) => Ok(started.clone()),
        };
        let before = ours.map_or_else(|| untouched(&self.one), |ours| Ok(ours.after))?;
        let after = theirs.map_or_else(|| untouched(&self.other), |theirs| Ok(theirs.after))?;
        let is_folder = |version: &Version<'_>| version.entry.kind == FileKind::Directory;
        let is_folder = match (&before, &after) {
            (None, None) => started.as_ref().is_some_and(is_folder),
            (before, after) => before.iter().chain(after).all(is_folder),
        };
        Ok(Ends { area, by: Some(by), is_folder, started, before, after })
    }

    /// Counts a file of the workspace.
    fn sum_up(&self, path: &Path, by: By, differs: bool, between: &mut Between) {
        let path = self.told(path, Area::Workspace);
        match (by, differs) {
            (By::One, true) => between.one.push(path),
            (By::Other, true) => between.other.push(path),
            (By::Both, true) => between.different.push(path),
            (By::Both, false) => between.same += 1,
            (By::One | By::Other, false) => {}
        }
    }

    fn change(&self, step: Step<'_>, detail: Detail) -> Result<Change, DiffError> {
        let said = text(step.before.as_ref(), step.after.as_ref(), step.contents, detail)
            .map_err(|source| DiffError::Read { path: step.path.clone(), source })?;
        let kind = match (step.kind, &step.from) {
            (Kind::Deleted, _) => ChangeKind::Deleted,
            (Kind::Renamed, Some(from)) => ChangeKind::Renamed { from: self.told(from, step.area) },
            (Kind::Added | Kind::Renamed, _) => ChangeKind::Added,
            (Kind::Modified, _) => ChangeKind::Modified,
            (Kind::TypeChanged, _) => ChangeKind::TypeChanged,
        };
        Ok(Change {
            path: self.told(&step.path, step.area),
            kind,
            before: step.before.map(|version| version.entry),
            after: step.after.map(|version| version.entry),
            contents: step.contents,
            binary: said.binary,
            xattrs: step.xattrs,
            ignored: step.area == Area::Ignored,
            lines: said.lines,
            by: Some(step.by),
        })
    }

    /// In the workspace relative to its root, elsewhere absolute.
    fn told(&self, path: &Path, area: Area) -> Text {
        let inside = self.one.workspace().filter(|_| area != Area::Machine);
        match inside.and_then(|root| path.strip_prefix(root).ok()) {
            Some(inside) if inside.as_os_str().is_empty() => Text::from("."),
            Some(inside) => Text(inside.as_os_str().as_bytes().to_vec()),
            None => Text(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

/// A path as it stands on both sides.
struct Ends<'a> {
    area: Area,
    /// Who changed it, if anybody did.
    by: Option<By>,
    /// Whatever stands there, or stood there before both removed it.
    is_folder: bool,
    /// What stood there before anybody changed it.
    started: Option<Version<'a>>,
    before: Option<Version<'a>>,
    after: Option<Version<'a>>,
}

impl<'a> Ends<'a> {
    /// Says anew who changed it: since this state, which may have changed it before.
    fn count_since(&mut self, since: Option<Both<'a>>) -> io::Result<()> {
        let then = since.map_or_else(|| self.started.clone(), |both| both.after);
        let changed =
            |now: Option<&Version<'a>>| Ok::<_, io::Error>(difference(then.as_ref(), now)?.is_some());
        self.by = match (changed(self.before.as_ref())?, changed(self.after.as_ref())?) {
            (true, true) => Some(By::Both),
            (true, false) => Some(By::One),
            (false, true) => Some(By::Other),
            (false, false) => None,
        };
        Ok(())
    }
}

/// How they differ.
struct Difference {
    kind: Kind,
    /// The bytes, the target or the type differ.
    contents: bool,
    xattrs: Vec<Text>,
}

/// One path that differs.
struct Step<'a> {
    path: PathBuf,
    /// Of what was renamed: where it stood.
    from: Option<PathBuf>,
    area: Area,
    by: By,
    kind: Kind,
    before: Option<Version<'a>>,
    after: Option<Version<'a>>,
    contents: bool,
    xattrs: Vec<Text>,
}

impl Step<'_> {
    /// Deletions first, as everywhere.
    fn order(&self) -> (bool, &Path) {
        (self.kind != Kind::Deleted, &self.path)
    }

    /// One end of what may be a rename.
    fn loose(&self, at: usize, area: Area, kind: Kind) -> Option<Loose<'_>> {
        let version = self.before.as_ref().or(self.after.as_ref())?;
        let size = version.entry.size;
        let fits = self.area == area && self.kind == kind && version.is_file() && size > 0;
        fits.then(|| Loose { at, size, name: self.path.file_name().unwrap_or_default().as_bytes() })
    }
}

/// `None`: they do not differ but for their times.
fn difference(before: Option<&Version<'_>>, after: Option<&Version<'_>>) -> io::Result<Option<Difference>> {
    let of = |kind| Ok(Some(Difference { kind, contents: true, xattrs: Vec::new() }));
    let (before, after) = match (before, after) {
        (None, None) => return Ok(None),
        (Some(_), None) => return of(Kind::Deleted),
        (None, Some(_)) => return of(Kind::Added),
        (Some(before), Some(after)) if before.entry.kind != after.entry.kind => return of(Kind::TypeChanged),
        (Some(before), Some(after)) => (before, after),
    };
    if after.is_file() && before.is_one_with(after)? {
        return Ok(None);
    }
    let contents = match after.entry.kind {
        FileKind::File => !is_same(before, after)?,
        FileKind::Symlink => before.entry.target != after.entry.target,
        FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => false,
    };
    let xattrs = differing_names(&before.attributes()?, &after.attributes()?);
    let said = |version: &Version<'_>| (version.entry.mode, version.entry.uid, version.entry.gid);
    let differs = contents || !xattrs.is_empty() || said(before) != said(after);
    Ok(differs.then_some(Difference { kind: Kind::Modified, contents, xattrs }))
}

/// Do two files hold the same?
fn is_same(one: &Version<'_>, other: &Version<'_>) -> io::Result<bool> {
    Ok(one.entry.size == other.entry.size && same(one.read()?, other.read()?)?)
}

/// Makes one step of a file that goes and one with the same contents that comes.
fn pair_renamed(steps: &mut Vec<Step<'_>>) -> io::Result<()> {
    let mut pairs = Vec::new();
    for area in [Area::Workspace, Area::Ignored, Area::Machine] {
        let loose = |kind| -> Vec<Loose<'_>> {
            let ends = steps.iter().enumerate();
            ends.filter_map(|(at, step)| step.loose(at, area, kind)).collect()
        };
        let (gone, new) = (loose(Kind::Deleted), loose(Kind::Added));
        pairs.extend(rename::pairs(&gone, &new, |old, new| match (&steps[old].before, &steps[new].after) {
            (Some(old), Some(new)) => readable(is_same(old, new)),
            (None, _) | (_, None) => Ok(false),
        })?);
    }
    for (old, new) in &pairs {
        let (before, from, by) = (steps[*old].before.take(), steps[*old].path.clone(), steps[*old].by);
        let new = &mut steps[*new];
        new.by = if new.by == by { by } else { By::Both };
        (new.kind, new.before, new.from, new.contents) = (Kind::Renamed, before, Some(from), false);
    }
    let gone: HashSet<usize> = pairs.into_iter().map(|(old, _)| old).collect();
    let mut at = 0;
    steps.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    Ok(())
}

const APART: &[u8] =
    b"The two started from different states of the workspace: this is only what one of them changed.\n\n";
