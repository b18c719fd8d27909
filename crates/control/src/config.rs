//! Reading `zeno.yaml`.
//!
//! It is read from the real workspace, never from a sandbox: a gate must not be weakened by the change that it judges.

mod elsewhere;
mod graph;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use model::config::{Config, FILE};
use model::{Code, Name, Problem};

pub use elsewhere::{Elsewhere, elsewhere};
pub use graph::{BadGraph, choose};

/// Reads the file at the root of a workspace. `None`: there is none.
pub fn load(workspace: &Path) -> Result<Option<Config>, ConfigError> {
    let path = workspace.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Read { path, source }),
    }
}

/// Reads the text of the file and looks whether it makes sense as a whole.
pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let config: Config = serde_saphyr::from_str(text).map_err(|error| at(path, text, &error))?;
    graph::check(&config).map_err(|problem| {
        let line = line_of(text, problem.word());
        ConfigError::Graph { path: path.to_owned(), line, source: problem }
    })?;
    Ok(config)
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// `said` is what the reader of the file says of this line.
    #[error("`{}` is not as it should be in line {line}, `{text}`: {said}", path.display())]
    Syntax { path: PathBuf, line: u64, text: String, said: String },
    #[error("`{}` makes no sense{}", path.display(), line.map(|line| format!(" in line {line}")).unwrap_or_default())]
    Graph { path: PathBuf, line: Option<u64>, source: BadGraph },
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        let problem = Self::from_error(Code::BadRequest, &error);
        match error {
            ConfigError::Read { .. } => problem,
            ConfigError::Syntax { .. } => problem.hint("docs/zeno.schema.json says what may stand in it"),
            ConfigError::Graph { source, .. } => match source.hint() {
                Some(hint) => problem.hint(hint),
                None => problem,
            },
        }
    }
}

/// What the parser says, with the line it says it of.
fn at(path: &Path, text: &str, error: &serde_saphyr::Error) -> ConfigError {
    let plain = error.without_snippet();
    let line = error.location().map_or(1, |location| location.line());
    let said = plain.to_string();
    // It names the place, too, in its own way, and what a programmer could set.
    let said = said.split(" at line ").next().unwrap_or(&said);
    let said = said.split(", set DuplicateKeyPolicy").next().unwrap_or(said).to_owned();
    let shown = text.lines().nth(usize::try_from(line).unwrap_or(1).saturating_sub(1)).unwrap_or_default();
    ConfigError::Syntax { path: path.to_owned(), line, text: shown.trim().to_owned(), said }
}

/// Where a name first stands as a whole word; a guess, but one that is nearly always right.
fn line_of(text: &str, name: &Name) -> Option<u64> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let has_word = |line: &str| line.split(|c| !is_part(c)).any(|word| word == name.as_str());
    text.lines().position(has_word).map(|at| at as u64 + 1)
}
