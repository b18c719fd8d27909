//! A file system of another kind, in an image of its own, for peers that need it. Mounted for one row.
//!
//! Never where a sandbox would see it: zeno would have to overlay it too, and be slower for the sake of a peer.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::BenchError;
use crate::process;
use crate::rig::{Rig, Scratch};

/// Unmounted and removed when dropped.
#[derive(Debug)]
pub(crate) struct Volume {
    /// As in `mkfs.KIND`.
    pub(crate) kind: &'static str,
    point: PathBuf,
    /// Holds the image, and goes after it is unmounted.
    scratch: Scratch,
}

impl Volume {
    pub(crate) fn mount(rig: &Rig, kind: &'static str) -> Result<Self, BenchError> {
        if !rustix::process::geteuid().is_root() {
            return Err(BenchError::NotRoot);
        }
        let scratch = Scratch::new(rig)?;
        let image = scratch.join("image");
        File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .map_err(|source| BenchError::Image { path: image.clone(), source })?;
        process::quietly(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))?;
        let point = tempfile::Builder::new()
            .prefix("zeno-bench-")
            .tempdir_in(PLACE)
            .map_err(|source| BenchError::MountPoint { place: PLACE.into(), source })?;
        process::quietly(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(point.path()))?;
        Ok(Self { kind, point: point.keep(), scratch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.point
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The kernel frees the loop device with the last mount.
        if let Err(error) = process::quietly(Command::new("umount").arg(&self.point)) {
            eprintln!("left mounted, with {}: {}", self.scratch.path().display(), crate::chain(&error));
        } else if let Err(error) = fs::remove_dir(&self.point) {
            eprintln!("left behind: {}: {error}", self.point.display());
        }
    }
}

/// Empty in every sandbox, with all that is mounted below it.
const PLACE: &str = "/run";
/// The image takes what is in it, not this.
const SIZE: u64 = 8 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// ext4, because every machine can make one.
    #[test]
    fn root_gets_a_volume_that_leaves_nothing_mounted_and_nobody_else_gets_one() {
        let rig = Rig { zeno: PathBuf::new(), place: crate::rig::scratch::PLACE.into(), is_attic: false };
        let mounted = Volume::mount(&rig, "ext4");
        if !rustix::process::geteuid().is_root() {
            assert!(matches!(mounted, Err(BenchError::NotRoot)));
            return;
        }
        let volume = mounted.unwrap();
        let (point, image) = (volume.path().to_owned(), volume.scratch.join("image"));
        fs::write(point.join("file"), "text").unwrap();
        assert!(point.join("lost+found").is_dir() && image.exists());
        drop(volume);
        assert!(!point.exists() && !image.exists());
    }
}
