//! An ordinary user to run the suite as, and a copy of the built suite that user can read.
//!
//! Never builds anything as that user: the binaries are those the caller has just tested.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::suite::{self, CGROUPS, Suite, SuiteError};
use super::tally::Tally;
use crate::files::{self, FileError};
use crate::process::{self, ProcessError};
use crate::sdks::{Sdks, SdksError};

const NAME: &str = "zeno-ci";

#[derive(Debug)]
pub(super) struct User {
    pub(super) name: &'static str,
    pub(super) uid: u32,
    pub(super) gid: u32,
    home: String,
}

/// Finds the user, or makes it.
pub(super) fn ensure() -> Result<User, UserError> {
    if let Some(user) = look_up()? {
        return Ok(user);
    }
    process::quietly(Command::new("useradd").args(["--create-home", "--user-group", NAME]))?;
    look_up()?.ok_or(UserError::NotMade)
}

fn look_up() -> Result<Option<User>, UserError> {
    let passwd = files::read(Path::new("/etc/passwd"))?;
    let entry = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry[0] == NAME);
    let Some(entry) = entry else { return Ok(None) };
    match entry[..] {
        [_, _, uid, gid, _, home, _] => {
            let number = |text: &str| text.parse().map_err(UserError::Passwd);
            Ok(Some(User { name: NAME, uid: number(uid)?, gid: number(gid)?, home: home.to_owned() }))
        }
        _ => Ok(None),
    }
}

/// The suite where any user can read it.
#[derive(Debug)]
pub(super) struct Staged {
    folder: TempDir,
    zeno: PathBuf,
    sdks: Option<Sdks>,
}

impl Staged {
    pub(super) fn new(suite: &Suite) -> Result<Self, UserError> {
        let folder = tempfile::Builder::new()
            .prefix("zeno-suite-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in("/var/tmp")
            .map_err(UserError::Stage)?;
        copy_checkout(&folder.path().join("checkout"))?;
        let zeno = folder.path().join("zeno");
        files::copy(&suite.zeno, &zeno)?;
        let copy = |sdks: &Sdks| sdks.copy_to(&folder.path().join("sdks"));
        let sdks = suite.sdks.as_ref().map(copy).transpose()?;
        let staged = Self { folder, zeno, sdks };
        staged.copy_toolchain()?;
        for binary in &suite.binaries {
            files::copy(&binary.executable, &staged.copy_of(&binary.executable))?;
        }
        Ok(staged)
    }

    pub(super) fn run(
        &self,
        suite: &Suite,
        user: &User,
        cgroups: &str,
        tally: &mut Tally,
    ) -> Result<(), UserError> {
        for binary in &suite.binaries {
            let executable = self.copy_of(&binary.executable);
            let folder = self.checkout().join(&binary.folder);
            let run = |which: &[&str], tally: &mut Tally| {
                let mut words = self.words(&executable, &binary.folder, user, cgroups);
                words.extend(which.iter().map(|word| (*word).to_owned()));
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                suite::watch("setpriv", &words, |command| command.current_dir(&folder), tally)
            };
            let before = tally.failed;
            let status = run(suite.only.as_deref().as_slice(), tally)?;
            if !status.success() && tally.failed == before {
                tally.broken.push(format!("{} as {} ({status})", binary.folder.display(), user.name));
            }
            for name in tally.take_failing() {
                println!("== once more: {name}");
                let mut again = Tally::default();
                run(&["--exact", &name], &mut again)?;
                tally.asked_again(&name, &again);
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<(), UserError> {
        self.folder.close().map_err(UserError::Stage)
    }

    fn words(&self, executable: &Path, folder: &Path, user: &User, cgroups: &str) -> Vec<String> {
        let checkout = self.checkout();
        let tools = self.toolchain().join("bin");
        let variables = [
            ("HOME", user.home.clone()),
            ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", tools.display())),
            (CGROUPS, cgroups.to_owned()),
            ("ZENO_BIN", self.zeno.display().to_string()),
            ("CARGO_MANIFEST_DIR", checkout.join(folder).display().to_string()),
            ("INSTA_WORKSPACE_ROOT", checkout.display().to_string()),
            ("INSTA_UPDATE", "no".to_owned()),
        ];
        let mut words: Vec<String> = vec![
            format!("--reuid={}", user.uid),
            format!("--regid={}", user.gid),
            "--init-groups".to_owned(),
        ];
        words.extend(["--reset-env".to_owned(), "env".to_owned()]);
        words.extend(variables.map(|(name, value)| format!("{name}={value}")));
        let sdks = self.sdks.iter().flat_map(Sdks::variables);
        words.extend(sdks.map(|(name, path)| format!("{name}={}", path.display())));
        words.push(executable.display().to_string());
        words.push("--show-output".to_owned());
        words
    }

    fn copy_of(&self, executable: &Path) -> PathBuf {
        self.folder.path().join(executable.file_name().expect("cargo names its executables"))
    }

    /// Cargo, and the compiler it asks for its version: the caller's own are mostly where only the caller may look.
    fn copy_toolchain(&self) -> Result<(), UserError> {
        let root = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let root = PathBuf::from(OsStr::from_bytes(root.trim_ascii_end()));
        for name in ["bin", "lib"] {
            files::make_folder(&self.toolchain().join(name))?;
        }
        for name in ["bin/cargo", "bin/rustc"] {
            files::copy(&root.join(name), &self.toolchain().join(name))?;
        }
        for library in files::list(&root.join("lib"))?.iter().filter(|path| path.is_file()) {
            let name = library.file_name().expect("listed by its name");
            files::copy(library, &self.toolchain().join("lib").join(name))?;
        }
        Ok(())
    }

    fn toolchain(&self) -> PathBuf {
        self.folder.path().join("toolchain")
    }

    fn checkout(&self) -> PathBuf {
        self.folder.path().join("checkout")
    }
}

/// The files git knows or would know: tests read their fixtures and snapshots from there.
fn copy_checkout(to: &Path) -> Result<(), UserError> {
    files::make_folder(to)?;
    let list = process::output(
        Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(files::root()),
    )?;
    for name in list.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        let from = files::root().join(name);
        // Deleted but not yet committed.
        if !from.is_file() {
            continue;
        }
        files::make_folder(to.join(name).parent().expect("beneath the checkout"))?;
        files::copy(&from, &to.join(name))?;
    }
    // A strict umask at the caller's must not hide the copy.
    Ok(process::quietly(Command::new("chmod").args(["-R", "a+rX"]).arg(to))?)
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UserError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Sdks(#[from] SdksError),
    #[error(transparent)]
    Suite(#[from] SuiteError),
    #[error("useradd succeeded, but {NAME} is not in /etc/passwd")]
    NotMade,
    #[error("/etc/passwd has a user {NAME} with an id that is no number")]
    Passwd(#[source] std::num::ParseIntError),
    #[error("cannot make or remove the folder for the copied suite in /var/tmp")]
    Stage(#[source] io::Error),
}
