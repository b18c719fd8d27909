//! A sandbox's own top layer: the secrets that its user chose to show to it.
//!
//! The capture is shared by sandboxes that may see different secrets, so it holds none of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copy::{Copy, Means};
use super::files::{look, look_at, open_beneath, split};
use super::index::ROOT;
use super::layer::{Kind, Layer};
use super::metadata;
use super::place::{EXTRAS, Place};
use super::{CaptureError, Holder};

/// Copies the files at `paths` into a layer of `holder`'s own.
pub(super) fn make(
    place: &Place,
    holder: Holder,
    paths: &BTreeSet<Vec<u8>>,
) -> Result<PathBuf, CaptureError> {
    let folder = place.store.join(EXTRAS);
    let path = (0..)
        .map(|number| folder.join(format!("{holder}.{number}")))
        .find(|path| !path.exists())
        .expect("there are more numbers than folders");
    fill(place, &path, paths).map_err(|source| CaptureError::WriteLayer { path: path.clone(), source })?;
    Ok(path)
}

fn fill(place: &Place, path: &Path, paths: &BTreeSet<Vec<u8>>) -> io::Result<()> {
    let layer = Layer::create(path, &Kind::Lead, place.flavour)?;
    let mut leads = BTreeSet::from([Vec::new()]);
    for path in paths {
        let (folder, name) = split(path);
        let source = open_beneath(&place.root, folder)?;
        let Some(seen) = look(&source, name)? else { continue };
        let target = layer.open_dir(folder, &place.scratch)?;
        let copy = Copy {
            dir: ROOT,
            name: name.into(),
            seen,
            means: Means::Copy,
            source: Arc::new(source),
            target: Arc::new(target),
            is_fresh: true,
        };
        copy.run(&place.scratch, place.flavour)?;
        leads.extend(
            Path::new(OsStr::from_bytes(folder)).ancestors().map(|lead| lead.as_os_str().as_bytes().to_vec()),
        );
    }
    for lead in leads.iter().rev() {
        let source = open_beneath(&place.root, lead)?;
        let target = layer.open_dir(lead, &place.scratch)?;
        metadata::copy(&source, &look_at(&source)?.stat, &target)?;
    }
    Ok(())
}
