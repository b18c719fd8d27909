//! Repositories to work on, the same on every machine.

use std::path::Path;
use std::process::Command;

use super::{RigError, interrupt};
use crate::files;
use crate::process;

/// Files per folder, as in a source tree of middling order.
const PER_FOLDER: usize = 100;

/// A committed git repository with this many files of about 2 KiB.
pub(crate) fn repository(folder: &Path, count: usize) -> Result<(), RigError> {
    for at in 0..count {
        if at.is_multiple_of(PER_FOLDER) {
            interrupt::check()?;
        }
        let name = format!("part{:04}/file{:03}.txt", at / PER_FOLDER, at % PER_FOLDER);
        files::write(&folder.join(name), &content(at))?;
    }
    commit(folder)
}

/// Makes a folder a git repository with everything in it committed.
pub(crate) fn commit(folder: &Path) -> Result<(), RigError> {
    let commit = ["commit", "--quiet", "--no-gpg-sign", "--message=everything"];
    for words in [&["init", "--quiet"][..], &["add", "--all"], &commit] {
        process::quietly(git(folder).args(words))?;
    }
    Ok(())
}

/// Git in this folder, as somebody, and without clean-up at a moment of its own.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"]);
    command.current_dir(folder);
    command
}

/// Lines that differ from file to file; one file in a thousand holds the word that searches look for.
fn content(at: usize) -> String {
    let mut text = format!("file {at}\n");
    for line in 0..40 {
        text += &format!("line {line} of {at}: the quick brown fox jumps {}\n", at * 31 + line * 7);
    }
    if at.is_multiple_of(1000) {
        text += "needle\n";
    }
    text
}
