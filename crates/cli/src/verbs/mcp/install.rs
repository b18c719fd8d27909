//! `zeno mcp install`: zeno written into the configuration of an agent's client, beside what is there.

mod json;
mod toml;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::TextDiff;
use tempfile::NamedTempFile;

use crate::args::mcp::{McpClient, McpInstall, McpScope};
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::{output, prompt};

pub(super) async fn install(typed: &McpInstall, invocation: &Invocation) -> Result<u8, Failure> {
    let place = Place::of(typed, invocation)?;
    let command = Command::own(invocation)?;
    let before = read(&place.file)?;
    let after = place.format.with(before.as_deref().unwrap_or_default(), &command).map_err(|reason| {
        let snippet = place.format.snippet(&command);
        Failure::ClientConfig { path: place.file.clone(), snippet, source: Box::new(reason) }
    })?;
    let is_same = before.as_deref() == Some(after.as_str());
    if typed.print {
        output::answer(&after)?;
        return Ok(DONE);
    }
    if is_same {
        return done(&place.file, None, invocation, Done::Already);
    }
    output::note(&difference(&place.file, before.as_deref().unwrap_or_default(), &after));
    if !typed.yes {
        if !prompt::is_possible(invocation.form) {
            return Err(Failure::UnconfirmedConfig { path: place.file });
        }
        if !prompt::agrees(&format!("Write this to {}?", place.file.display())).await? {
            return Ok(DONE);
        }
    }
    // A person takes time, and clients write to their files themselves.
    if read(&place.file)? != before {
        return Err(Failure::ConfigMovedOn { path: place.file });
    }
    let at = |source| Failure::WriteHost { path: place.file.clone(), source };
    let copy = if before.is_some() { Some(keep_copy(&place.file).map_err(at)?) } else { None };
    replace(&place.file, &after, place.new_mode).map_err(at)?;
    done(&place.file, copy.as_deref(), invocation, Done::Written)
}

/// Where a client reads what servers there are, and in which form.
struct Place {
    /// The file itself, not a link to it.
    file: PathBuf,
    format: Format,
    /// Of a file that is not there yet.
    new_mode: u32,
}

#[derive(Clone, Copy)]
enum Format {
    /// JSON, with comments or not, and the servers below this name.
    Json {
        servers: &'static str,
        says_type: bool,
    },
    Toml,
}

/// How a client starts zeno.
struct Command {
    program: String,
    /// Where zeno's state is, if it is not where it would be by itself.
    home: Option<String>,
}

impl Place {
    fn of(typed: &McpInstall, invocation: &Invocation) -> Result<Self, Failure> {
        let home = || invocation.environment.home.clone().ok_or(Failure::NoUserHome);
        let project = || std::env::current_dir().map_err(Failure::Cwd);
        let servers = Format::Json { servers: "mcpServers", says_type: false };
        let default = if typed.client == McpClient::Codex { McpScope::User } else { McpScope::Project };
        let scope = typed.scope.unwrap_or(default);
        let (file, format) = match (typed.client, scope) {
            (McpClient::ClaudeCode, McpScope::Project) => (project()?.join(".mcp.json"), servers),
            (McpClient::ClaudeCode, McpScope::User) => (home()?.join(".claude.json"), servers),
            (McpClient::Cursor, McpScope::Project) => (project()?.join(".cursor/mcp.json"), servers),
            (McpClient::Cursor, McpScope::User) => (home()?.join(".cursor/mcp.json"), servers),
            (McpClient::VsCode, scope) => {
                let file = match scope {
                    McpScope::Project => project()?.join(".vscode/mcp.json"),
                    McpScope::User => home()?.join(".config/Code/User/mcp.json"),
                };
                (file, Format::Json { servers: "servers", says_type: true })
            }
            (McpClient::Codex, McpScope::Project) => (project()?.join(".codex/config.toml"), Format::Toml),
            (McpClient::Codex, McpScope::User) => (home()?.join(".codex/config.toml"), Format::Toml),
        };
        let new_mode = match scope {
            // For everybody who works on it.
            McpScope::Project => 0o644,
            // Clients keep secrets there, too.
            McpScope::User => 0o600,
        };
        Ok(Self { file: real(file)?, format, new_mode })
    }
}

impl Format {
    fn with(self, text: &str, command: &Command) -> Result<String, Unfit> {
        match self {
            Self::Json { servers, says_type } => json::with(text, servers, says_type, command),
            Self::Toml => toml::with(text, command),
        }
    }

    /// What would stand in a file of its own.
    fn snippet(self, command: &Command) -> String {
        self.with("", command).expect("an empty file takes it")
    }
}

impl Command {
    /// By its name where that leads to this program, else by where it lies.
    fn own(invocation: &Invocation) -> Result<Self, Failure> {
        let exe = std::env::current_exe().and_then(fs::canonicalize).map_err(Failure::OwnProgram)?;
        let variables = model::env::variables();
        let path = variables.iter().find(|variable| variable.name.0 == b"PATH");
        let found = path.and_then(|path| {
            let mut files = std::env::split_paths(path.value.as_os_str()).map(|folder| folder.join(NAME));
            files.find(|file| file.is_file())
        });
        let is_found = found.and_then(|file| fs::canonicalize(file).ok()).is_some_and(|file| file == exe);
        let program = if is_found { NAME.to_owned() } else { exe.to_string_lossy().into_owned() };
        let home = invocation.environment.zeno_home.as_deref().map(|home| {
            std::path::absolute(home).map(|home| home.to_string_lossy().into_owned()).map_err(Failure::Cwd)
        });
        Ok(Self { program, home: home.transpose()? })
    }

    const ARGUMENTS: [&str; 1] = ["mcp"];
}

/// Why a file is left as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("it is not JSON")]
    Json(#[source] jsonc_parser::errors::ParseError),
    #[error("it is not TOML")]
    Toml(#[source] toml_edit::TomlError),
    #[error("`{name}` in it is not what it should be")]
    Shape { name: &'static str },
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Failure::ReadHost { path: path.to_owned(), source }),
    }
}

fn difference(path: &Path, before: &str, after: &str) -> String {
    let path = path.display().to_string();
    TextDiff::from_lines(before, after).unified_diff().header(&path, &path).to_string()
}

/// Beside it, under a name that nothing has.
fn keep_copy(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut number = 0;
    loop {
        number += 1;
        let copy = path.with_file_name(format!("{name}.before-zeno-{number}"));
        let new = fs::File::options().write(true).create_new(true).open(&copy);
        match new {
            // With the rights of the original: there may be secrets in it.
            Ok(_) => return fs::copy(path, &copy).map(|_length| copy),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < COPIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// Where a link leads is shown, copied and written. One that leads nowhere is not understood.
fn real(path: PathBuf) -> Result<PathBuf, Failure> {
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        _ => fs::canonicalize(&path).map_err(|source| Failure::ReadHost { path, source }),
    }
}

/// Whole or not at all, with the owner and the rights that it had.
fn replace(path: &Path, text: &str, new_mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    match fs::metadata(path) {
        Ok(metadata) => {
            let own = new.as_file().metadata()?;
            if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(new.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
            new.as_file().set_permissions(metadata.permissions())?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            new.as_file().set_permissions(fs::Permissions::from_mode(new_mode))?;
        }
        Err(error) => return Err(error),
    }
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Written,
    Already,
}

fn done(path: &Path, copy: Option<&Path>, invocation: &Invocation, done: Done) -> Result<u8, Failure> {
    #[derive(Serialize)]
    struct Installed<'a> {
        outcome: Done,
        path: &'a Path,
        #[serde(skip_serializing_if = "Option::is_none")]
        copy: Option<&'a Path>,
    }
    let shown = match (done, copy) {
        (Done::Already, _) => format!("{} has it already\n", path.display()),
        (Done::Written, None) => format!("wrote {}\n", path.display()),
        (Done::Written, Some(copy)) => {
            format!("wrote {}; as it was: {}\n", path.display(), copy.display())
        }
    };
    invocation.answer(&Installed { outcome: done, path, copy }, |_| shown)?;
    Ok(DONE)
}

const NAME: &str = "zeno";
const COPIES: u32 = 1000;
