//! Edits of a workspace, as a person or a tool would make them, in any order.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use rustix::fs::XattrFlags;

#[derive(Clone, Debug)]
pub(super) enum Edit {
    Write(String, u16),
    Append(String, u16),
    RenameOver(String, u16),
    Remove(String),
    Rename(String, String),
    Folder(String),
    Symlink(String),
    Link(String, String),
    Mode(String, u32),
    Time(String, u32),
    Attribute(String, u8),
}

impl Edit {
    pub(super) fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            4 => (path(), any::<u16>()).prop_map(|(path, text)| Self::Write(path, text)),
            2 => (path(), any::<u16>()).prop_map(|(path, text)| Self::Append(path, text)),
            2 => (path(), any::<u16>()).prop_map(|(path, text)| Self::RenameOver(path, text)),
            3 => path().prop_map(Self::Remove),
            4 => (path(), path()).prop_map(|(from, to)| Self::Rename(from, to)),
            2 => path().prop_map(Self::Folder),
            1 => path().prop_map(Self::Symlink),
            2 => (path(), path()).prop_map(|(from, to)| Self::Link(from, to)),
            1 => (path(), 0_u32..8).prop_map(|(path, mode)| Self::Mode(path, mode)),
            1 => (path(), any::<u32>()).prop_map(|(path, time)| Self::Time(path, time)),
            1 => (path(), any::<u8>()).prop_map(|(path, value)| Self::Attribute(path, value)),
        ]
    }

    /// Makes the edit, or not, if the tree does not allow it just now.
    pub(super) fn try_in(&self, work: &Path) -> std::io::Result<()> {
        match self {
            Self::Write(path, text) => std::fs::write(work.join(path), text.to_string()),
            Self::Append(path, text) => {
                let mut file = std::fs::OpenOptions::new().append(true).open(work.join(path))?;
                file.write_all(text.to_string().as_bytes())
            }
            Self::RenameOver(path, text) => {
                let draft = work.join("draft");
                std::fs::write(&draft, text.to_string())?;
                std::fs::rename(&draft, work.join(path)).or_else(|_| std::fs::remove_file(&draft))
            }
            Self::Remove(path) => {
                let path = work.join(path);
                if path.symlink_metadata()?.is_dir() {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                }
            }
            Self::Rename(from, to) => std::fs::rename(work.join(from), work.join(to)),
            Self::Folder(path) => std::fs::create_dir_all(work.join(path)),
            Self::Symlink(path) => symlink("somewhere", work.join(path)),
            Self::Link(from, to) => std::fs::hard_link(work.join(from), work.join(to)),
            Self::Mode(path, mode) => {
                let path = work.join(path);
                if path.symlink_metadata()?.is_symlink() {
                    return Ok(());
                }
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o700 + mode))
            }
            Self::Time(path, time) => {
                let time = UNIX_EPOCH + Duration::new(u64::from(*time), time % 1000);
                std::fs::File::open(work.join(path))?.set_modified(time)
            }
            Self::Attribute(path, value) => {
                let file = std::fs::File::open(work.join(path))?;
                Ok(rustix::fs::fsetxattr(&file, "user.zeno-test", &[*value], XattrFlags::empty())?)
            }
        }
    }
}

/// Few names, so that edits meet.
fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["[abc]", Just("d\n".to_owned())], 1..4)
        .prop_map(|names| names.join("/"))
}
