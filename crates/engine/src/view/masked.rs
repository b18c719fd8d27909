//! Which secrets are hidden, wherever links lead to them, and what a request lifts.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use model::mask::PathMask;
use model::sandbox::Masked;

use super::build::{Ask, EMPTY, Planner};
use super::hide::Hiding;
use super::plan::Meta;
use crate::homes::{homes, own_home};

impl Planner {
    /// What is hidden from a sandbox, and which of it is to be told: what is there now and, in the workspace, also what is
    /// not: whatever the sandbox puts in such a place is never promoted.
    pub(super) fn hide(&self, ask: &Ask<'_>) -> (Hiding, Vec<Masked>) {
        let mut hiding = Hiding::default();
        let mut told = Vec::new();
        for folder in EMPTY {
            hiding.empty(Path::new(folder));
        }
        let callers = ask.request.context.home().map_or_else(own_home, |home| Some(home.to_owned()));
        let homes: Vec<Home> = homes(callers.as_deref()).into_iter().map(Home::read).collect();
        let mut folders = RealFolders::of(&homes);
        let lifted = Lifted::by(ask, callers.as_deref());
        let frozen: Vec<&Path> = ask
            .frozen
            .iter()
            .flat_map(|frozen| &frozen.parts)
            .map(|part| part.mountpoint.as_path())
            .collect();
        for Place { mask, path, may_exist } in self.masks.paths.iter().flat_map(|mask| places(mask, &homes)) {
            let stat = may_exist.then(|| fs::symlink_metadata(&path).ok()).flatten();
            let real = may_exist.then(|| folders.real(&path, stat.as_ref())).flatten();
            let real = real.filter(|real| *real != path);
            if lifted.names(&path) || real.as_deref().is_some_and(|real| lifted.names(real)) {
                continue;
            }
            for path in [Some(path), real].into_iter().flatten() {
                let is_frozen = frozen.iter().any(|folder| path.starts_with(folder));
                // A frozen workspace is there, though a folder above it starts empty.
                let is_hidden =
                    if is_frozen { hiding.absence(&path).is_some() } else { hiding.covers(&path) };
                if is_hidden {
                    continue;
                }
                hiding.absent(&path);
                if stat.is_some() || is_frozen {
                    told.push(Masked { path: path.into(), reason: mask.reason.clone() });
                }
            }
        }
        hiding.absent(&self.home);
        for mountpoint in frozen {
            hiding.way_to(mountpoint);
        }
        put_resolver(&mut hiding);
        (hiding, told)
    }
}

/// Where folders really are, asked once for each.
struct RealFolders(HashMap<PathBuf, Option<PathBuf>>);

impl RealFolders {
    fn of(homes: &[Home]) -> Self {
        Self(homes.iter().map(|home| (home.path.clone(), Some(home.path.clone()))).collect())
    }

    /// Where `path` leads, or would if there were something.
    fn real(&mut self, path: &Path, stat: Option<&fs::Metadata>) -> Option<PathBuf> {
        if stat.is_some_and(fs::Metadata::is_symlink) {
            return fs::canonicalize(path).ok();
        }
        let (folder, name) = (path.parent()?, path.file_name()?);
        let known = self.0.entry(folder.to_owned()).or_insert_with(|| fs::canonicalize(folder).ok());
        Some(known.as_ref()?.join(name))
    }
}

/// What a request shows all the same.
struct Lifted(Vec<PathBuf>);

impl Lifted {
    fn by(ask: &Ask<'_>, home: Option<&Path>) -> Self {
        let workspace = ask.frozen.map(|frozen| frozen.workspace.as_path());
        let written = ask.request.unmask.iter().filter_map(|wish| match wish.strip_prefix("~/") {
            Some(inside) => {
                let home = home?;
                Some(fs::canonicalize(home).unwrap_or_else(|_gone| home.to_owned()).join(inside))
            }
            None if wish.starts_with('/') => Some(PathBuf::from(wish)),
            None => Some(workspace?.join(wish)),
        });
        Self(written.flat_map(|path| [resolved(&path), Some(path)]).flatten().collect())
    }

    fn names(&self, path: &Path) -> bool {
        self.0.iter().any(|lifted| path.starts_with(lifted))
    }
}

/// The same path without links on the way.
fn resolved(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::exec::{Text, Variable};
    use model::mask::Masks;
    use model::sandbox::CreateRequest;

    use super::*;
    use crate::capture::{Frozen, FrozenPart};
    use crate::launcher::Rights;
    use crate::view::{DiskKind, HiddenKind};

    /// A planner with a store of its own.
    struct Lab {
        planner: Planner,
        _store: tempfile::TempDir,
    }

    impl Lab {
        fn new() -> Self {
            let store = tempfile::tempdir().unwrap();
            let rights = Rights::of_this_process();
            Self { planner: Planner::new(store.path().to_owned(), rights, Masks::built_in()), _store: store }
        }

        fn hide(
            &self,
            home: Option<&Path>,
            workspace: Option<&Path>,
            unmask: &[&str],
        ) -> (Hiding, Vec<Masked>) {
            let unmask = unmask.iter().map(|path| (*path).to_owned()).collect();
            let mut request = CreateRequest { unmask, ..Default::default() };
            let variable = |home: &Path| Variable {
                name: Text(b"HOME".to_vec()),
                value: Text(home.as_os_str().as_encoded_bytes().to_vec()),
            };
            request.context.env = home.map(variable).into_iter().collect();
            let frozen = workspace.map(|workspace| Frozen {
                workspace: workspace.to_owned(),
                generation: 0,
                taken: Timestamp::UNIX_EPOCH,
                parts: vec![FrozenPart { mountpoint: workspace.to_owned(), layers: Vec::new(), live: None }],
                caveats: Vec::new(),
                masked: Vec::new(),
            });
            self.planner.hide(&Ask {
                request: &request,
                frozen: frozen.as_ref(),
                disk_kind: DiskKind::Memory,
            })
        }
    }

    #[test]
    fn secrets_of_ones_own_home_are_hidden_whatever_a_request_says_of_it() {
        let lab = Lab::new();
        let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = own_home().unwrap().canonicalize().unwrap();
        let hidden = |home: Option<&Path>, unmask: &[&str]| lab.hide(home, None, unmask).0;
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

    #[test]
    fn what_links_lead_to_is_hidden_and_lifted_under_either_name() {
        let lab = Lab::new();
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (real, linked) = (folder.join("real"), folder.join("linked"));
        fs::create_dir_all(real.join("dotfiles/config")).unwrap();
        std::os::unix::fs::symlink("real", &linked).unwrap();
        std::os::unix::fs::symlink("dotfiles/config", real.join(".config")).unwrap();
        let hidden = |unmask: &[&str]| lab.hide(Some(&linked), None, unmask).0;
        // Neither is there yet.
        let (ssh, gh) = (real.join(".ssh"), real.join("dotfiles/config/gh"));
        let hiding = hidden(&[]);
        assert!(hiding.covers(&ssh) && hiding.covers(&gh));
        for wish in
            ["~/.ssh".to_owned(), linked.join(".ssh").display().to_string(), ssh.display().to_string()]
        {
            let hiding = hidden(&[&wish]);
            assert!(!hiding.covers(&ssh) && hiding.covers(&gh), "{wish}");
        }
        for wish in ["~/.config/gh", gh.to_str().unwrap()] {
            let hiding = hidden(&[wish]);
            assert!(hiding.covers(&ssh) && !hiding.covers(&gh), "{wish}");
        }
    }

    #[test]
    fn a_frozen_workspace_hides_what_is_masked_in_it_also_where_all_around_it_starts_empty() {
        let lab = Lab::new();
        for place in ["/tmp", "/var/tmp"] {
            let folder = tempfile::tempdir_in(place).unwrap();
            let home = folder.path().canonicalize().unwrap();
            fs::create_dir_all(home.join(".config/gh")).unwrap();
            let (hiding, told) = lab.hide(Some(&home), Some(&home), &["~/.aws", ".kube"]);
            let entries = hiding.absent_in(&home, Path::new("inner"));
            let kind = |path: &str| {
                let path = Path::new(path);
                entries.iter().find(|hidden| hidden.path == path).map(|hidden| &hidden.kind)
            };
            for path in ["inner", "inner/.config"] {
                assert!(matches!(kind(path), Some(HiddenKind::Through(_))), "{place} {path}");
            }
            for path in ["inner/.config/gh", "inner/.ssh", "inner/.docker"] {
                assert_eq!(kind(path), Some(&HiddenKind::Absent), "{place} {path}");
            }
            assert_eq!((kind("inner/.aws"), kind("inner/.kube")), (None, None), "{place}");
            let is_told = |path: &str| told.iter().any(|masked| masked.path == home.join(path).into());
            assert!(is_told(".config/gh") && is_told(".ssh") && !is_told(".aws"), "{place}: {told:?}");
            // Of what lies elsewhere, only what is there is told.
            let (_, told) = lab.hide(Some(&home), None, &[]);
            assert!(!told.iter().any(|masked| masked.path == home.join(".ssh").into()), "{place}: {told:?}");
        }
    }
}
