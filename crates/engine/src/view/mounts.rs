//! The machine's mounts, from mountinfo.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount that can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    pub(super) kind: String,
    /// The file system it shows, as the kernel numbers them.
    device: Vec<u8>,
}

/// The kernel's list of this process's mounts. Read in one piece: nobody knows its size before.
pub(crate) fn table() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16 << 10);
    File::open("/proc/self/mountinfo")?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the text of `/proc/self/mountinfo`: what can be seen, shallow first. A mount that a later one
/// covers cannot be seen and is left out.
pub(super) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-");
        if let (Some(device), Some(point), Some(kind)) =
            (fields.get(2), fields.get(4), dash.and_then(|dash| fields.get(dash + 1)))
        {
            let point = unescape(point);
            mounts.retain(|covered| !covered.point.starts_with(&point));
            let kind = String::from_utf8_lossy(kind).into_owned();
            mounts.push(Mount { point, kind, device: device.to_vec() });
        }
    }
    mounts.sort_by(|a, b| a.point.cmp(&b.point));
    mounts
}

impl Mount {
    /// Holds files of the machine, as opposed to a window on the kernel.
    pub(super) fn is_real(&self) -> bool {
        !KERNEL_KINDS.contains(&self.kind.as_str())
    }
}

/// The mount on which `path` lies.
pub(super) fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.as_os_str().len())
}

/// Do both paths lie on one file system? Its sub-volumes may have device numbers of their own, so `stat` cannot tell.
pub(crate) fn share_file_system(one: &Path, other: &Path) -> io::Result<bool> {
    let mounts = parse(&table()?);
    let device = |path| mount_of(&mounts, path).map(|mount| &mount.device);
    Ok(device(one) == device(other))
}

fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(|digits| {
            digits.iter().try_fold(0u8, |sum, digit| {
                let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
                sum.checked_mul(8)?.checked_add(digit)
            })
        });
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// File systems that show the kernel, not files.
const KERNEL_KINDS: [&str; 21] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unescaped_and_covered_mounts_are_left_out() {
        let text = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
            28 27 0:5 / /a\\040b rw shared:1 - tmpfs t rw\n\
            29 28 0:6 / /a\\040b/in rw - tmpfs t rw\n\
            30 28 0:7 / /a\\040b rw - btrfs t rw\n\
            31 27 0:8 / /proc rw - proc proc rw\n";
        let mounts = parse(text);
        let seen: Vec<_> =
            mounts.iter().map(|mount| (mount.point.to_str().unwrap(), mount.kind.as_str())).collect();
        assert_eq!(seen, [("/", "ext4"), ("/a b", "btrfs"), ("/proc", "proc")]);
        assert!(!mounts[2].is_real());
        assert_eq!(mount_of(&mounts, Path::new("/a b/x")).unwrap().point, Path::new("/a b"));
        assert_eq!(mount_of(&mounts, Path::new("/ab")).unwrap().point, Path::new("/"));
        assert_eq!(mount_of(&mounts, Path::new("/ab")).unwrap().device, b"254:0");
    }
}
