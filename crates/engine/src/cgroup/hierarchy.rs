//! Where the cgroup hierarchies are mounted and where in them this process is.

use std::path::{Path, PathBuf};

use super::layout::Version;

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// Version 1: the controllers bound to it. Version 2 says so per directory.
    pub(super) controllers: Vec<String>,
    pub(super) mount: PathBuf,
    /// This process's own directory, as far as it can be reached below `mount`.
    pub(super) current: PathBuf,
}

/// Reads `/proc/self/mountinfo` and `/proc/self/cgroup`, given as text.
pub(super) fn hierarchies(mountinfo: &str, membership: &str) -> Vec<Hierarchy> {
    mountinfo.lines().filter_map(|line| hierarchy(line, membership)).collect()
}

fn hierarchy(line: &str, membership: &str) -> Option<Hierarchy> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let version = match file_system.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options: Vec<&str> = file_system.nth(1)?.split(',').collect();
    let own = membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, bound, path) = (parts.next()?, parts.next()?, parts.next()?);
        let matches = match version {
            Version::V1 => !bound.is_empty() && bound.split(',').all(|name| options.contains(&name)),
            Version::V2 => number == "0" && bound.is_empty(),
        };
        matches.then_some(path)
    })?;
    let mount = PathBuf::from(point);
    // A path outside the mounted part (a foreign cgroup namespace) cannot be reached: the mount is all there is.
    let current = match Path::new(own).strip_prefix(root) {
        Ok(below) if !own.contains("..") => mount.join(below),
        Ok(_) | Err(_) => mount.clone(),
    };
    let controllers = match version {
        Version::V1 => options.iter().map(|&name| name.to_owned()).collect(),
        Version::V2 => Vec::new(),
    };
    Some(Hierarchy { version, controllers, mount, current })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_with_our_own_place_in_them() {
        let mountinfo = "\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/x /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
42 31 0:39 / /tmp rw - tmpfs tmpfs rw";
        let membership = "4:memory:/docker/x/y\n1:cpu,cpuacct:/\n0::/user.slice\n";
        let found: Vec<_> = hierarchies(mountinfo, membership)
            .into_iter()
            .map(|hierarchy| (hierarchy.version, hierarchy.current.display().to_string()))
            .collect();
        let expected = [
            (Version::V1, "/sys/fs/cgroup/cpu,cpuacct/".to_owned()),
            (Version::V1, "/sys/fs/cgroup/memory/y".to_owned()),
            (Version::V2, "/sys/fs/cgroup/unified/user.slice".to_owned()),
        ];
        assert_eq!(found, expected);
    }
}
