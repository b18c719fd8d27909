//! The directory in which this user may make cgroups, if there is one.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use super::hierarchy::Hierarchy;
use super::layout::{Controller, Version};

/// Where in this hierarchy we may make cgroups, and with which controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) directory: PathBuf,
    pub(super) controllers: Vec<Controller>,
}

pub(super) fn base(hierarchy: &Hierarchy, uid: u32) -> Option<Base> {
    match hierarchy.version {
        Version::V1 => base_v1(hierarchy, uid),
        Version::V2 => base_v2(hierarchy),
    }
}

/// The topmost of our own cgroup and those above it that is ours to write: a daemon started from another
/// session finds the same one again. Else the directory an administrator made for this user at the top.
fn base_v1(hierarchy: &Hierarchy, uid: u32) -> Option<Base> {
    let given = hierarchy.mount.join(format!("zeno-{uid}"));
    let directory = own_line(hierarchy).last().or_else(|| is_ours(&given).then_some(given.as_path()))?;
    let bound = |controller: &Controller| hierarchy.controllers.iter().any(|name| name == controller.name());
    let controllers = Controller::ALL.into_iter().filter(bound).collect();
    Some(Base { directory: directory.to_path_buf(), controllers })
}

/// Of our own cgroup and those above it that are ours to write, the one that hands down the most
/// controllers, and of these the topmost, for the same reason. It must be above us because moving a process
/// takes the right to write to the common ancestor; our own usually does not do, because a cgroup that hands
/// controllers down may hold no processes.
fn base_v2(hierarchy: &Hierarchy) -> Option<Base> {
    let handed_down = |directory: &Path| {
        let hands_down = |controller: &Controller| hands_down(directory, &hierarchy.mount, *controller);
        Controller::ALL.into_iter().filter(hands_down).collect::<Vec<_>>()
    };
    own_line(hierarchy)
        .map(|directory| Base { directory: directory.to_path_buf(), controllers: handed_down(directory) })
        .max_by_key(|base| base.controllers.len())
}

/// From our own cgroup upwards, those that are ours to write.
fn own_line(hierarchy: &Hierarchy) -> impl Iterator<Item = &Path> {
    let ancestors = hierarchy.current.ancestors();
    ancestors.take_while(|directory| directory.starts_with(&hierarchy.mount)).filter(|path| is_ours(path))
}

fn is_ours(directory: &Path) -> bool {
    let may_write = |path: &Path| rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    may_write(directory) && may_write(&directory.join("cgroup.procs"))
}

fn hands_down(directory: &Path, mount: &Path, controller: Controller) -> bool {
    // A file that cannot be read lists nothing we could use.
    let lists = |file: &str| {
        let text = fs::read_to_string(directory.join(file)).unwrap_or_else(|_absent| String::new());
        text.split_whitespace().any(|name| name == controller.name())
    };
    // The real root has no `cgroup.type` and may hold processes next to controlled children.
    let is_root = directory == mount && !directory.join("cgroup.type").exists();
    let is_empty = || fs::read_to_string(directory.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty());
    lists("cgroup.subtree_control") || (lists("cgroup.controllers") && (is_root || is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(directory: &Path, controllers: &str, handed_down: &str, pids: &str) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("cgroup.type"), "domain\n").unwrap();
        fs::write(directory.join("cgroup.controllers"), controllers).unwrap();
        fs::write(directory.join("cgroup.subtree_control"), handed_down).unwrap();
        fs::write(directory.join("cgroup.procs"), pids).unwrap();
    }

    #[test]
    fn version_2_takes_the_topmost_directory_that_hands_the_most_down() {
        let top = tempfile::tempdir().unwrap();
        let service = top.path().join("user@1000.service");
        let scope = service.join("app.slice/shell.scope");
        make(top.path(), "cpu memory pids", "cpu memory pids", "");
        make(&service, "memory pids", "memory pids", "");
        make(&service.join("app.slice"), "memory pids", "memory", "");
        make(&scope, "memory", "", "17\n");
        let hierarchy = Hierarchy {
            version: Version::V2,
            controllers: Vec::new(),
            mount: top.path().to_path_buf(),
            current: scope,
        };
        let found = base(&hierarchy, 1000).unwrap();
        assert_eq!(found.directory, top.path());
        assert_eq!(found.controllers, Controller::ALL);

        make(top.path(), "memory", "memory", "");
        let found = base(&hierarchy, 1000).unwrap();
        assert_eq!(found.directory, service);
        assert_eq!(found.controllers, [Controller::Memory, Controller::Pids]);
    }
}
