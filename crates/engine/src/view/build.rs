//! From the machine and a request to a plan.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::Caveat;
use model::caveat::CaveatKind;
use model::limits::Defaults;
use model::mask::{Masks, PathMask};
use model::net::Net;
use model::sandbox::{CreateRequest, Masked};
use rustix::fs::StatVfsMountFlags;

use super::hide::Hiding;
use super::mounts::{self, Mount};
use super::plan::{DiskKind, Lower, Meta, Part, Plan, Root};
use super::skeleton::Skeleton;
use crate::capture::{FROZEN_ROOT, Frozen};
use crate::homes::{homes, own_home};
use crate::launcher::Rights;

/// Makes plans for one `$ZENO_HOME`.
#[derive(Debug)]
pub struct Planner {
    home: PathBuf,
    rights: Rights,
    masks: Masks,
}

/// What a plan is made for.
#[derive(Debug)]
pub struct Ask<'a> {
    pub request: &'a CreateRequest,
    pub frozen: Option<&'a Frozen>,
    pub disk_kind: DiskKind,
}

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("could not read the list of mounts")]
    Mounts(#[source] io::Error),
    #[error("could not read the folders at the root of the file system")]
    Root(#[source] io::Error),
    #[error("could not look at `{path}`")]
    Look { path: PathBuf, source: io::Error },
    #[error("no mount holds `{path}`")]
    NoMount { path: PathBuf },
}

/// Folders that are made afresh in every sandbox.
const FRESH: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Folders that start empty.
const EMPTY: [&str; 2] = ["/tmp", "/run"];

impl Planner {
    #[must_use]
    pub fn new(home: PathBuf, rights: Rights, masks: Masks) -> Self {
        Self { home, rights, masks }
    }

    /// Makes the plan, and says what it hides and where it falls short.
    pub fn plan(&self, ask: &Ask<'_>) -> Result<(Plan, Vec<Masked>, Vec<Caveat>), ViewError> {
        let mountinfo = mounts::table().map_err(ViewError::Mounts)?;
        let mounts = mounts::parse(&mountinfo);
        let (mut hiding, masked) = self.hide(ask);
        let mut caveats = Vec::new();
        let (root, mut parts) = match self.rights {
            Rights::Root => (Root::FirstPart, self.whole_mounts(&mounts, &mut hiding, &mut caveats)?),
            Rights::User { .. } => {
                let skip: Vec<&Path> = FRESH.iter().chain(&EMPTY).map(Path::new).collect();
                let skeleton = Skeleton::of_root(&mounts, &skip).map_err(ViewError::Root)?;
                caveats.extend(skeleton.caveats);
                let points = EMPTY.iter().map(PathBuf::from).chain(skeleton.parts).collect::<Vec<_>>();
                (Root::Skeleton(skeleton.bones), self.folder_parts(&points, &mounts, &hiding)?)
            }
        };
        if let Some(frozen) = ask.frozen {
            self.frozen_parts(frozen, &mounts, &mut parts)?;
        }
        for (place, part) in parts.iter_mut().enumerate() {
            part.name = place.to_string();
        }
        if ask.request.net == Net::Host {
            let text = "the sandbox uses the host's network, unfiltered; abstract sockets of the host can be reached too";
            caveats.push(Caveat::new(CaveatKind::Network, text));
        }
        if matches!(self.rights, Rights::User { .. }) {
            let text = "files of root and of others keep their permissions: what needs root, as installing packages does, \
                        does not work inside";
            caveats.push(Caveat::new(CaveatKind::Privilege, text));
        }
        if ask.request.nested {
            let text = "programs inside may make user namespaces, so they reach more of the kernel; what needs real devices \
                        or mounts of its own, as Docker does, still does not work";
            caveats.push(Caveat::new(CaveatKind::Privilege, text));
        }
        let plan = Plan {
            hostname: hostname(),
            root,
            parts,
            net: ask.request.net.wiring(),
            nested: ask.request.nested,
            pids: ask.request.limits.pids.unwrap_or(Defaults::PIDS).into(),
            disk: ask.request.limits.disk.map(|size| size.0),
            disk_kind: ask.disk_kind,
        };
        Ok((plan, masked, caveats))
    }

    fn hide(&self, ask: &Ask<'_>) -> (Hiding, Vec<Masked>) {
        let mut hiding = Hiding::default();
        let mut masked = Vec::new();
        for folder in EMPTY {
            hiding.empty(Path::new(folder));
        }
        let callers = ask.request.context.home().map_or_else(own_home, |home| Some(home.to_owned()));
        let lifted: Vec<PathBuf> =
            ask.request.unmask.iter().filter_map(|lifted| expand(lifted, callers.as_deref())).collect();
        let homes: Vec<Home> = homes(callers.as_deref()).into_iter().map(Home::read).collect();
        let mut folders = RealFolders::default();
        for Place { mask, path, may_exist } in self.masks.paths.iter().flat_map(|mask| places(mask, &homes)) {
            if lifted.iter().any(|lifted| path.starts_with(lifted)) || hiding.covers(&path) {
                continue;
            }
            if may_exist && let Ok(stat) = fs::symlink_metadata(&path) {
                masked.push(Masked { path: path.clone().into(), reason: mask.reason.clone() });
                if let Some(real) = folders.real(&path, &stat)
                    && real != path
                {
                    hiding.absent(&real);
                }
            }
            hiding.absent(&path);
        }
        hiding.absent(&self.home);
        for part in ask.frozen.iter().flat_map(|frozen| &frozen.parts) {
            hiding.way_to(&part.mountpoint);
        }
        put_resolver(&mut hiding);
        (hiding, masked)
    }

    /// Root: one overlay per real mount.
    fn whole_mounts(
        &self,
        mounts: &[Mount],
        hiding: &mut Hiding,
        caveats: &mut Vec<Caveat>,
    ) -> Result<Vec<Part>, ViewError> {
        let fresh = |mount: &Mount| FRESH.iter().any(|fresh| mount.point.starts_with(fresh));
        let mut points = Vec::new();
        for mount in mounts.iter().filter(|mount| mount.is_real() && !fresh(mount)) {
            if hiding.covers(&mount.point) {
                continue;
            }
            if is_empty_for_good(&mount.point) {
                hiding.empty(&mount.point);
                hiding.way_to(&mount.point);
                continue;
            }
            match fs::symlink_metadata(&mount.point) {
                Ok(stat) if stat.is_dir() => points.push(mount.point.clone()),
                Ok(_) => {
                    let text = "a single file is mounted here; the file below it is shown instead";
                    caveats.push(Caveat::at(CaveatKind::View, mount.point.to_string_lossy(), text));
                }
                Err(error) => {
                    let text = format!("a mount that cannot be read is left out: {error}");
                    caveats.push(Caveat::at(CaveatKind::View, mount.point.to_string_lossy(), text));
                }
            }
        }
        self.folder_parts(&points, mounts, hiding)
    }

    fn folder_parts(
        &self,
        points: &[PathBuf],
        mounts: &[Mount],
        hiding: &Hiding,
    ) -> Result<Vec<Part>, ViewError> {
        let mut parts = Vec::new();
        for point in points {
            let mut hidden = hiding.below(point, points);
            if hiding.covers(point) {
                // Only the way to what is mounted below; the folder itself is not shown.
                parts.push(self.part(point, vec![Lower::Hide(std::mem::take(&mut hidden))])?);
                continue;
            }
            let mut lowers = Vec::new();
            if !hidden.is_empty() {
                lowers.push(Lower::Hide(hidden));
            }
            lowers.push(machine(mounts, point)?);
            parts.push(self.part(point, lowers)?);
        }
        Ok(parts)
    }

    fn part(&self, point: &Path, lowers: Vec<Lower>) -> Result<Part, ViewError> {
        let look = |source| ViewError::Look { path: point.to_owned(), source };
        let mut top = Meta::of(&fs::symlink_metadata(point).map_err(look)?);
        if rustix::fs::access(point, rustix::fs::Access::WRITE_OK).is_err() {
            top = top.unwritable();
        }
        Ok(Part {
            name: String::new(),
            mountpoint: point.to_owned(),
            lowers,
            data: None,
            inner: None,
            top,
            optional: matches!(self.rights, Rights::Root) && point != Path::new("/"),
        })
    }

    fn frozen_parts(
        &self,
        frozen: &Frozen,
        mounts: &[Mount],
        parts: &mut Vec<Part>,
    ) -> Result<(), ViewError> {
        for layer in &frozen.parts {
            let mut lowers: Vec<Lower> = Vec::new();
            for path in &layer.layers {
                let inside = path.strip_prefix(&self.home);
                lowers.push(match inside {
                    Ok(inside) => Lower::Store(inside.to_owned()),
                    Err(_) => machine(mounts, path)?,
                });
            }
            let live = layer.live.as_ref().map(|live| machine(mounts, live)).transpose()?;
            let data = match self.rights {
                Rights::Root => {
                    lowers.extend(live);
                    None
                }
                Rights::User { .. } => live,
            };
            let part = self.part(&layer.mountpoint, lowers)?;
            parts.push(Part { data, inner: Some(FROZEN_ROOT.to_owned()), optional: false, ..part });
        }
        Ok(())
    }
}

/// Where folders really are, asked once for each.
#[derive(Default)]
struct RealFolders(HashMap<PathBuf, Option<PathBuf>>);

impl RealFolders {
    fn real(&mut self, path: &Path, stat: &fs::Metadata) -> Option<PathBuf> {
        if stat.is_symlink() {
            return fs::canonicalize(path).ok();
        }
        let (folder, name) = (path.parent()?, path.file_name()?);
        let known = self.0.entry(folder.to_owned()).or_insert_with(|| fs::canonicalize(folder).ok());
        Some(known.as_ref()?.join(name))
    }
}

fn machine(mounts: &[Mount], path: &Path) -> Result<Lower, ViewError> {
    let no_mount = || ViewError::NoMount { path: path.to_owned() };
    let mount = mounts::mount_of(mounts, path).ok_or_else(no_mount)?;
    let inside = path.strip_prefix(&mount.point).map_err(|_outside| no_mount())?;
    Ok(Lower::Machine { mount: mount.point.clone(), inside: inside.to_owned() })
}

/// Is there nothing in a mount, and never will be? An overlay of it would show the same as an empty folder.
fn is_empty_for_good(point: &Path) -> bool {
    let read_only =
        rustix::fs::statvfs(point).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    read_only && fs::read_dir(point).is_ok_and(|mut entries| entries.next().is_none())
}

/// A home, and what is in it: most masks name what is in none, and reading it once is cheaper than to ask for each.
struct Home {
    path: PathBuf,
    /// None: that cannot be told.
    names: Option<HashSet<OsString>>,
}

impl Home {
    fn read(path: PathBuf) -> Self {
        let names =
            fs::read_dir(&path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        Self { path, names: names.ok() }
    }

    fn may_hold(&self, inside: &str) -> bool {
        let first = Path::new(inside).iter().next().unwrap_or_default();
        self.names.as_ref().is_none_or(|names| names.contains(first))
    }
}

/// Where a mask hides something.
struct Place<'a> {
    mask: &'a PathMask,
    path: PathBuf,
    may_exist: bool,
}

/// In every home, if it names one.
fn places<'a>(mask: &'a PathMask, homes: &[Home]) -> Vec<Place<'a>> {
    match mask.path.strip_prefix("~/") {
        Some(inside) => {
            let place = |home: &Home| {
                let (path, may_exist) = (home.path.join(inside), home.may_hold(inside));
                Place { mask, path, may_exist }
            };
            homes.iter().map(place).collect()
        }
        None => vec![Place { mask, path: PathBuf::from(&mask.path), may_exist: true }],
    }
}

/// A path as its caller wrote it.
fn expand(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(inside) => Some(home?.join(inside)),
        None => path.starts_with('/').then(|| PathBuf::from(path)),
    }
}

/// A resolver file that lies below an emptied folder (systemd-resolved's does) is put in, so that names
/// resolve where the network allows it.
fn put_resolver(hiding: &mut Hiding) {
    let Ok(real) = fs::canonicalize("/etc/resolv.conf") else { return };
    if hiding.covers(&real)
        && let Ok(bytes) = fs::read(&real)
        && let Ok(stat) = fs::symlink_metadata(&real)
    {
        hiding.put(&real, bytes, Meta::of(&stat));
    }
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use model::exec::{Text, Variable};

    use super::*;

    #[test]
    fn secrets_of_ones_own_home_are_hidden_whatever_a_request_says_of_it() {
        let store = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
        let planner = Planner::new(store.path().to_owned(), Rights::of_this_process(), Masks::built_in());
        let own = own_home().unwrap();
        let hidden = |home: Option<&Path>, unmask: &[&str]| {
            let unmask = unmask.iter().map(|path| (*path).to_owned()).collect();
            let mut request = CreateRequest { unmask, ..Default::default() };
            let variable = |home: &Path| Variable {
                name: Text(b"HOME".to_vec()),
                value: Text(home.as_os_str().as_encoded_bytes().to_vec()),
            };
            request.context.env = home.map(variable).into_iter().collect();
            let ask = Ask { request: &request, frozen: None, disk_kind: DiskKind::Memory };
            planner.hide(&ask).0
        };
        for home in [None, Some(elsewhere.path()), Some(Path::new("/none/such")), Some(Path::new("no/path"))]
        {
            let hiding = hidden(home, &[]);
            assert!(hiding.covers(&own.join(".ssh/id_ed25519")), "{home:?}");
            assert!(!hiding.covers(&own.join("project")), "{home:?}");
        }
        assert!(hidden(Some(elsewhere.path()), &[]).covers(&elsewhere.path().join(".aws")));
        // What is lifted is the caller's own.
        assert!(!hidden(None, &["~/.ssh"]).covers(&own.join(".ssh")));
        let hiding = hidden(Some(elsewhere.path()), &["~/.ssh"]);
        assert!(hiding.covers(&own.join(".ssh")) && !hiding.covers(&elsewhere.path().join(".ssh")));
    }
}
