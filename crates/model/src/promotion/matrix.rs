//! What the sandbox did to a path, and what reality did to it meanwhile: every pair with its outcome.
//!
//! A statement, not a rule that is executed: the rules are general, and a test does every pair on real files and compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    Nothing,
    /// A text file.
    File,
    /// A folder with a text file in it.
    Folder,
}

impl Ground {
    pub const ALL: [Self; 3] = [Self::Nothing, Self::File, Self::Folder];
}

/// What was done to it. In a folder, files are created, edited and replaced in it; the rest is done to the folder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    None,
    /// Both sides create: the same name with other contents, or, in a folder, different names.
    Create,
    /// Written in place: the two sides change different lines.
    Edit,
    /// Another file renamed over it: the two sides change different lines.
    Replace,
    Delete,
    /// The two sides set different permissions.
    Chmod,
    FileToFolder,
    FolderToFile,
    /// Replaced by a symbolic link, or one created: the two sides' point elsewhere.
    Symlink,
}

impl Deed {
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Create,
        Self::Edit,
        Self::Replace,
        Self::Delete,
        Self::Chmod,
        Self::FileToFolder,
        Self::FolderToFile,
        Self::Symlink,
    ];

    /// Can it be done on this ground?
    #[must_use]
    pub fn fits(self, ground: Ground) -> bool {
        match self {
            Self::None | Self::Symlink => true,
            Self::Create => ground != Ground::File,
            Self::Edit | Self::Replace | Self::Delete | Self::Chmod => ground != Ground::Nothing,
            Self::FileToFolder => ground == Ground::File,
            Self::FolderToFile => ground == Ground::Folder,
        }
    }
}

/// What promoting does, where the two sides did not by chance do exactly the same (that is always [`Outcome::Same`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nobody did anything.
    Nothing,
    /// Reality gets what the sandbox did, beside what it did itself.
    Taken,
    /// The sandbox did nothing; reality stays as it is.
    Kept,
    /// Reality is like this already.
    Same,
    /// Both changes go into one file. Where the same lines changed, or it is not text, this is a conflict.
    Merged,
    Conflict,
}

/// The outcome of a pair; `None` where one of the deeds cannot be done on that ground.
#[must_use]
pub fn outcome(ground: Ground, sandbox: Deed, reality: Deed) -> Option<Outcome> {
    if !sandbox.fits(ground) || !reality.fits(ground) {
        return None;
    }
    Some(match (sandbox, reality) {
        (Deed::None, Deed::None) => Outcome::Nothing,
        (Deed::None, _) => Outcome::Kept,
        (_, Deed::None) => Outcome::Taken,
        _ => match ground {
            Ground::Nothing => Outcome::Conflict,
            Ground::File => on_file(sandbox, reality),
            Ground::Folder => on_folder(sandbox, reality),
        },
    })
}

/// The same for what a sandbox reads live: the machine, and what git ignores. Of that nobody has kept what it was, so there is
/// nothing to merge with, and what reality deleted looks as if it had never been.
#[must_use]
pub fn live_outcome(ground: Ground, sandbox: Deed, reality: Deed) -> Option<Outcome> {
    use Deed::{Chmod, Create, Delete, Edit, FileToFolder, FolderToFile, Replace, Symlink};
    let captured = outcome(ground, sandbox, reality)?;
    Some(match (ground, sandbox, reality) {
        _ if captured == Outcome::Merged => Outcome::Conflict,
        (_, _, Delete) if captured == Outcome::Conflict => Outcome::Taken,
        (Ground::File, FileToFolder, FileToFolder) => Outcome::Conflict,
        // The permissions that the sandbox found are not known any more, so that these might be its own.
        (Ground::Folder, Create | Edit | Replace, Chmod) => Outcome::Conflict,
        // All that comes and goes in a folder moves its time, too.
        (Ground::Folder, Chmod, Create | Replace) => Outcome::Conflict,
        (Ground::Folder, Delete | FolderToFile | Symlink, Chmod) => Outcome::Taken,
        _ => captured,
    })
}

fn on_file(sandbox: Deed, reality: Deed) -> Outcome {
    use Deed::{Chmod, Delete, Edit, FileToFolder, Replace};
    match (sandbox, reality) {
        (Delete, Delete) => Outcome::Same,
        (Edit | Replace, Edit | Replace | Chmod) | (Chmod, Edit | Replace) => Outcome::Merged,
        // Each made a folder of it, with a file of its own.
        (FileToFolder, FileToFolder) => Outcome::Taken,
        _ => Outcome::Conflict,
    }
}

fn on_folder(sandbox: Deed, reality: Deed) -> Outcome {
    use Deed::{Chmod, Create, Delete, Edit, Replace};
    match (sandbox, reality) {
        (Delete, Delete) => Outcome::Same,
        (Edit | Replace, Edit | Replace) => Outcome::Merged,
        // Different things in it, or of it.
        (Create, Create | Edit | Replace | Chmod)
        | (Edit | Replace, Create | Chmod)
        | (Chmod, Create | Edit | Replace) => Outcome::Taken,
        _ => Outcome::Conflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deeds_on_different_grounds_never_meet() {
        for sandbox in Deed::ALL {
            for reality in Deed::ALL {
                let meet = Ground::ALL.iter().any(|ground| outcome(*ground, sandbox, reality).is_some());
                let pair = [sandbox, reality];
                let apart = pair.contains(&Deed::FileToFolder)
                    && (pair.contains(&Deed::Create) || pair.contains(&Deed::FolderToFile));
                assert_eq!(meet, !apart, "{pair:?}");
            }
        }
    }
}
