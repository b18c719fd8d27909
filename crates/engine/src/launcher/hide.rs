//! Hiding layers on the stage's tmpfs. The same set of entries is made once and shared; layers in use are never changed.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

use super::rights::Rights;
use super::stage::Stage;
use super::wire::LaunchError;
use crate::view::{Hidden, HiddenKind, Hides, Meta};

impl Stage {
    /// The layer for these entries.
    pub(super) fn hiding_layer(&mut self, hides: &Hides) -> Result<PathBuf, LaunchError> {
        if let Some(known) = self.hiding.get(hides) {
            return Ok(known.clone());
        }
        let layer = self.hiding_folder().join(self.hiding.len().to_string());
        let failed = |e| LaunchError::new("make a layer that hides what is masked", e);
        let entries = hides.entries().map_err(|e| failed(e.into()))?;
        let made = fs::create_dir(&layer)
            .and_then(|()| entries.iter().try_for_each(|entry| make(&layer, entry, self.rights)));
        made.map_err(failed)?;
        self.hiding.insert(hides.clone(), layer.clone());
        Ok(layer)
    }
}

fn make(layer: &Path, entry: &Hidden, rights: Rights) -> std::io::Result<()> {
    let path = layer.join(&entry.path);
    match &entry.kind {
        HiddenKind::Absent => {
            // A character device 0:0 is overlayfs's word for "not here". Ordinary users may make it too.
            mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?;
        }
        HiddenKind::Through(meta) => {
            fs::create_dir(&path)?;
            dress(&path, *meta, rights)?;
        }
        HiddenKind::Empty(meta) => {
            fs::create_dir(&path)?;
            if matches!(rights, Rights::Root) {
                let name = CString::new(path.as_os_str().as_bytes())?;
                setxattr(name.as_c_str(), c"trusted.overlay.opaque", b"y", XattrFlags::empty())?;
            }
            dress(&path, *meta, rights)?;
        }
        HiddenKind::File { bytes, meta } => {
            fs::write(&path, bytes)?;
            dress(&path, *meta, rights)?;
        }
    }
    Ok(())
}

fn dress(path: &Path, meta: Meta, rights: Rights) -> std::io::Result<()> {
    if let (Some(uid), Some(gid)) = (rights.shifted(meta.uid), rights.shifted(meta.gid)) {
        lchown(path, Some(uid), Some(gid))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(meta.mode))
}
