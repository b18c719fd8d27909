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
    use std::os::unix::ffi::OsStrExt;

    use proptest::collection::vec;
    use proptest::prelude::*;

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

    /// Any bytes, and far more often than by chance those that mean something here.
    fn garbage() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            4 => prop::sample::select(vec![" ", "\n", " - ", "\\", "\\040", "\\08", "\\777", "/", "/a", "0:5", "tmpfs"])
                .prop_map(|word| word.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..8),
        ];
        vec(word, 0..64).prop_map(|words| words.concat())
    }

    /// A mount as the kernel could have it. Few names, so that some cover others.
    fn mount() -> impl Strategy<Value = Mount> {
        let odd = vec(1..=u8::MAX, 1..12).prop_filter("one name", |name| {
            !name.contains(&b'/') && ![&b"."[..], b".."].contains(&name.as_slice())
        });
        let few = prop::sample::select(vec!["a", "b", " ", "\\", "\\040", "\n"]);
        let name = prop_oneof![odd, few.prop_map(|name| name.as_bytes().to_vec())];
        let point = vec(name, 0..4).prop_map(|names| {
            let names = names.into_iter().map(OsString::from_vec);
            names.fold(PathBuf::from("/"), |point, name| point.join(name))
        });
        (point, "[a-z][a-z0-9.]{0,11}", (0..4096_u32, 0..99_u32)).prop_map(|(point, kind, (major, minor))| {
            Mount { point, kind, device: format!("{major}:{minor}").into_bytes() }
        })
    }

    /// As `show_mountinfo` of the kernel writes it: space, tab, newline and backslash in octal.
    fn line(mount: &Mount, optional: usize) -> Vec<u8> {
        let mut line = [b"36 35 ", &*mount.device, b" /sub\\040folder "].concat();
        for byte in mount.point.as_os_str().as_bytes() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => line.extend(format!("\\{byte:03o}").bytes()),
                _ => line.push(*byte),
            }
        }
        line.extend(b" rw,noatime");
        line.extend(b" master:1".repeat(optional));
        line.extend([b" - ", mount.kind.as_bytes(), b" source rw,errors=continue\n"].concat());
        line
    }

    proptest! {
        #[test]
        fn whatever_the_table_says_it_is_read_to_its_end(table in garbage()) {
            let mounts = parse(&table);
            for (at, mount) in mounts.iter().enumerate() {
                prop_assert!(mounts[..at].iter().all(|other| other.point < mount.point), "{mounts:?}");
                prop_assert!(mount_of(&mounts, &mount.point).is_some());
            }
        }

        #[test]
        fn what_the_kernel_wrote_is_read_as_it_was(table in vec((mount(), 0..3_usize), 0..12)) {
            let text: Vec<u8> = table.iter().flat_map(|(mount, optional)| line(mount, *optional)).collect();
            let mut seen = Vec::new();
            for (at, (mount, _)) in table.iter().enumerate() {
                let is_covered = table[at + 1..].iter().any(|(later, _)| mount.point.starts_with(&later.point));
                if !is_covered {
                    seen.push(mount.clone());
                }
            }
            seen.sort_by(|one, other| one.point.cmp(&other.point));
            prop_assert_eq!(parse(&text), seen);
        }
    }
}
