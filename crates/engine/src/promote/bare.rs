//! Folders that git takes for repositories although they are not called `.git`: whoever runs git in one of them, or a prompt
//! that does, runs what its settings and hooks say.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::reality::Reality;
use crate::capture::files::look;

/// Such folders among what is promoted, as they would be afterwards.
#[derive(Debug, Default)]
pub(super) struct Bare {
    /// A repository, or a work tree's part of one: all that is in it counts.
    repositories: BTreeSet<PathBuf>,
    /// What a repository may keep elsewhere (`commondir`): its settings and hooks count.
    commons: BTreeSet<PathBuf>,
}

impl Bare {
    /// `coming` are the paths at which something will be, `going` those at which nothing will be any more.
    pub(super) fn among<'a>(
        reality: &Reality,
        coming: impl Iterator<Item = &'a Path>,
        going: &BTreeSet<&Path>,
    ) -> io::Result<Self> {
        let mut names: BTreeSet<(&Path, Vec<u8>)> = BTreeSet::new();
        let mut folders: BTreeSet<&Path> = BTreeSet::new();
        for path in coming {
            let Some((folder, name)) = path.parent().zip(path.file_name()) else { continue };
            // On some file systems capitals make no difference.
            let name = name.as_encoded_bytes().to_ascii_lowercase();
            if PARTS.iter().any(|part| part.as_bytes().eq_ignore_ascii_case(&name)) {
                names.insert((folder, name));
            }
            folders.extend(
                folder.ancestors().take_while(|folder| !folders.contains(folder)).collect::<Vec<_>>(),
            );
        }
        let mut bare = Self::default();
        for folder in folders {
            let has = |part: &str| -> io::Result<bool> {
                Ok(names.contains(&(folder, part.to_ascii_lowercase().into_bytes()))
                    || !going.contains(&*folder.join(part)) && is_there(reality, &folder.join(part))?)
            };
            let is_common = has("objects")? && has("refs")?;
            if (is_common || has("commondir")?) && has("HEAD")? && !is_there(reality, &folder.join(".git"))? {
                bare.repositories.insert(folder.to_owned());
            } else if is_common {
                bare.commons.insert(folder.to_owned());
            }
        }
        Ok(bare)
    }

    /// Why git would run what comes to this path, or believe it; `None` if it would not.
    pub(super) fn reason(&self, path: &Path, is_folder: bool) -> Option<&'static str> {
        let is_in = |(folder, rest): (&Path, &Path)| {
            let first = rest.iter().next().unwrap_or_default().to_ascii_lowercase();
            let is_part =
                PARTS.iter().any(|part| first.eq_ignore_ascii_case(part)) && rest.iter().nth(1).is_none();
            let runs = RUN.iter().any(|part| first == *part);
            // A folder runs nothing by itself, but may be what was missing.
            match is_folder {
                true => is_part && self.repositories.contains(folder),
                false => self.repositories.contains(folder) || runs && self.commons.contains(folder),
            }
        };
        let mut above =
            path.ancestors().skip(1).filter_map(|folder| Some((folder, path.strip_prefix(folder).ok()?)));
        above.any(is_in).then_some(REASON)
    }
}

fn is_there(reality: &Reality, path: &Path) -> io::Result<bool> {
    let spot = reality.spot(path).expect("every absolute path is beneath `/`");
    match reality.parent(&spot) {
        Ok((folder, name)) => Ok(look(folder, name)?.is_some()),
        // Its folder comes with it, or is a link, behind which nothing is promoted.
        Err(_) => Ok(false),
    }
}

/// What git looks for before it takes a folder for a repository.
const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];
const RUN: [&str; 3] = ["config", "config.worktree", "hooks"];
const REASON: &str = "git takes its folder for a repository, and runs what its settings and hooks say";
