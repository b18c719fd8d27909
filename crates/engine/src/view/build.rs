//! From the machine and a request to a plan.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::Caveat;
use model::caveat::CaveatKind;
use model::limits::Defaults;
use model::mask::Masks;
use model::net::Net;
use model::sandbox::{CreateRequest, Masked};
use rustix::fs::StatVfsMountFlags;

use super::account;
use super::hide::Hiding;
use super::mounts::{self, Mount};
use super::plan::{DiskKind, Hidden, Hides, Lower, Meta, Part, Plan, Root};
use super::skeleton::Skeleton;
use crate::capture::{FROZEN_ROOT, Frozen};
use crate::launcher::Rights;

/// Makes plans for one `$ZENO_HOME`.
#[derive(Debug)]
pub struct Planner {
    pub(super) home: PathBuf,
    rights: Rights,
    pub(super) masks: Masks,
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
    #[error("a place that is hidden from sandboxes has a name that is not UTF-8")]
    Hide(#[source] serde_json::Error),
    #[error("no mount holds `{path}`")]
    NoMount { path: PathBuf },
    #[error("no number is free for another user of the sandbox")]
    NoNumber,
    #[error("nothing that a sandbox of this user can write to holds `{home}`")]
    NoHome { home: PathBuf },
    #[error("the workspace `{workspace}` lies in `{masked}`, which is hidden from sandboxes")]
    HiddenWorkspace { workspace: PathBuf, masked: PathBuf },
}

/// Folders that are made afresh in every sandbox.
const FRESH: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Folders that start empty.
pub(super) const EMPTY: [&str; 2] = ["/tmp", "/run"];

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
        if let Some(account) = &ask.request.account {
            account::put(&mut hiding, account, self.rights)?;
        }
        for part in ask.frozen.iter().flat_map(|frozen| &frozen.parts) {
            if let Some(masked) = hiding.absence(&part.mountpoint) {
                let (workspace, masked) = (part.mountpoint.clone(), masked.to_owned());
                return Err(ViewError::HiddenWorkspace { workspace, masked });
            }
        }
        let mut caveats = Vec::new();
        let (root, mut parts) = match self.rights {
            Rights::Root => (Root::FirstPart, self.whole_mounts(&mounts, &mut hiding, &mut caveats)?),
            Rights::User { .. } => {
                let skip: Vec<&Path> = FRESH.iter().chain(&EMPTY).map(Path::new).collect();
                let home = ask.request.account.as_ref().map(account::home);
                let skeleton = Skeleton::of_root(&mounts, &skip, home.as_deref());
                let mut skeleton = skeleton.map_err(ViewError::Root)?;
                if let Some(home) = home {
                    account::put_in_bones(&hiding, &mut skeleton.bones);
                    account::is_in_a_part(home, &skeleton.parts)?;
                }
                caveats.extend(skeleton.caveats);
                let points = EMPTY.iter().map(PathBuf::from).chain(skeleton.parts).collect::<Vec<_>>();
                (Root::Skeleton(skeleton.bones), self.folder_parts(&points, &mounts, &hiding)?)
            }
        };
        if let Some(frozen) = ask.frozen {
            self.frozen_parts(frozen, &mounts, &hiding, &mut parts)?;
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
            let hidden = hiding.below(point, points);
            if hiding.covers(point) {
                // Only the way to what is mounted below; the folder itself is not shown.
                parts.push(self.part(point, vec![hide(&hidden)?])?);
                continue;
            }
            let mut lowers = Vec::new();
            if !hidden.is_empty() {
                lowers.push(hide(&hidden)?);
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
        hiding: &Hiding,
        parts: &mut Vec<Part>,
    ) -> Result<(), ViewError> {
        for layer in &frozen.parts {
            let mut lowers: Vec<Lower> = Vec::new();
            // The capture is shared by sandboxes of which each may see something else, and what is read live in it is
            // not ours, so secrets at fixed paths are hidden from above. Here they are hidden even if git tracks them.
            let hidden = hiding.absent_in(&layer.mountpoint, Path::new(FROZEN_ROOT));
            if !hidden.is_empty() {
                lowers.push(hide(&hidden)?);
            }
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

fn hide(entries: &[Hidden]) -> Result<Lower, ViewError> {
    Hides::new(entries).map(Lower::Hide).map_err(ViewError::Hide)
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
