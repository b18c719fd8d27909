//! What of a machine its package managers would read: the caller's variables, and files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::exec::Context;

/// As the caller sees it.
#[derive(Debug)]
pub(crate) struct Machine {
    /// `/`, but for tests.
    root: PathBuf,
    home: Option<PathBuf>,
    cwd: PathBuf,
    variables: Vec<(String, String)>,
}

impl Machine {
    pub(crate) fn of(context: &Context) -> Self {
        Self::below(Path::new("/"), context)
    }

    pub(super) fn below(root: &Path, context: &Context) -> Self {
        let text = |text: &model::exec::Text| text.as_os_str().to_string_lossy().into_owned();
        let variables = context.env.iter().map(|variable| (text(&variable.name), text(&variable.value)));
        Self {
            root: root.to_owned(),
            home: context.home().map(Path::to_owned),
            cwd: PathBuf::from(context.cwd.as_os_str()),
            variables: variables.collect(),
        }
    }

    /// One that says something.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().rev().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// In the caller's home, if there is one.
    pub(super) fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    /// Where the caller's configuration is kept.
    pub(super) fn in_config(&self, path: &str) -> Option<PathBuf> {
        match self.variable("XDG_CONFIG_HOME") {
            Some(folder) => Some(Path::new(folder).join(path)),
            None => self.at_home(".config").map(|folder| folder.join(path)),
        }
    }

    /// Of the folder that the caller is in, and of those above it. The home's own is not among them.
    pub(super) fn of_project(&self, path: &str) -> Vec<PathBuf> {
        let above = self.cwd.ancestors().filter(|folder| Some(*folder) != self.home.as_deref());
        above.take(LEVELS).map(|folder| folder.join(path)).collect()
    }

    /// The folders in which the caller's programs are, but for those of the project.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let path = self.variable("PATH").unwrap_or_default();
        let folders = path.split(':').map(PathBuf::from);
        folders
            .filter(|folder| folder.is_absolute() && !folder.starts_with(&self.cwd))
            .take(MOST_FILES)
            .collect()
    }

    /// Where programs of this name really are.
    pub(super) fn programs(&self, name: &str) -> Vec<PathBuf> {
        let real = |folder: &PathBuf| {
            let path = std::fs::canonicalize(self.really(&folder.join(name))).ok()?;
            let root = std::fs::canonicalize(&self.root).ok()?;
            Some(Path::new("/").join(path.strip_prefix(root).ok()?))
        };
        self.paths().iter().filter_map(real).collect()
    }

    /// A file. None: there is none to be read.
    pub(super) fn open(&self, path: &Path) -> Option<File> {
        // Anything else than a file could keep us waiting.
        let path = self.really(path);
        std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        File::open(path).ok()
    }

    fn really(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text. None: there is nothing to read, for whatever reason, and so nothing is configured by it.
    pub(super) fn read(&self, path: &Path) -> Option<String> {
        let path = self.really(path);
        match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "a configuration could not be read");
                None
            }
        }
    }

    /// The files of a folder whose names end so, in order.
    pub(super) fn files(&self, folder: &Path, end: &str) -> Vec<PathBuf> {
        let real = self.really(folder);
        let Ok(entries) = std::fs::read_dir(real) else { return Vec::new() };
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
        let mut names: Vec<_> =
            names.filter(|name| name.to_string_lossy().ends_with(end)).take(MOST_FILES).collect();
        names.sort();
        names.iter().map(|name| folder.join(name)).collect()
    }
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    // Anything else than a file could keep us waiting.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Of a file; what comes after is not read.
const LONGEST: u64 = 1 << 20;
/// Of one folder.
const MOST_FILES: usize = 256;
/// Above the caller's folder.
const LEVELS: usize = 32;
