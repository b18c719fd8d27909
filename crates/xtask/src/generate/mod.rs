//! `cargo xtask generate`: reference documents made from the types, so that they cannot be wrong.

mod lifecycle;
mod limits;
mod masks;
mod promote;
mod schema;
mod table;

use std::process::Command;

use crate::files::{self, FileError};
use crate::process::{self, ProcessError};

/// Write the generated files
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is out of date
    #[arg(long)]
    pub(crate) check: bool,
}

/// A file in the repository that nobody edits.
struct Generated {
    path: &'static str,
    source: Source,
}

/// Where its text comes from.
enum Source {
    /// A function over the types.
    Types(fn() -> String),
    /// What the product itself says when run with these arguments.
    Zeno(&'static [&'static str]),
}

const GENERATED: &[Generated] = &[
    Generated { path: "docs/lifecycle.md", source: Source::Types(lifecycle::page) },
    Generated { path: "docs/limits.md", source: Source::Types(limits::page) },
    Generated { path: "docs/masks.md", source: Source::Types(masks::page) },
    Generated { path: "docs/promote.md", source: Source::Types(promote::page) },
    Generated { path: "docs/zeno.schema.json", source: Source::Types(schema::page) },
    Generated { path: "docs/openapi.json", source: Source::Zeno(&["openapi"]) },
    Generated { path: "docs/cli.md", source: Source::Zeno(&["reference"]) },
];

pub(crate) fn generate(args: &Args) -> Result<(), GenerateError> {
    let mut stale = Vec::new();
    for file in GENERATED {
        let text = match file.source {
            Source::Types(make) => make(),
            Source::Zeno(arguments) => zeno(arguments)?,
        };
        let path = files::root().join(file.path);
        let is_current = path.is_file() && files::read(&path)? == text;
        if is_current {
            continue;
        }
        if args.check {
            stale.push(file.path);
        } else {
            files::write(&path, &text)?;
            println!("wrote {}", file.path);
        }
    }
    if stale.is_empty() { Ok(()) } else { Err(GenerateError::Stale { files: stale.join(" ") }) }
}

fn zeno(arguments: &'static [&'static str]) -> Result<String, GenerateError> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "cli", "--"]).args(arguments).current_dir(files::root());
    let output = process::output(&mut command)?;
    let text = String::from_utf8(output).map_err(GenerateError::NotText)?;
    if text.trim().is_empty() { Err(GenerateError::Empty { verb: arguments.join(" ") }) } else { Ok(text) }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GenerateError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("`zeno {verb}` wrote nothing")]
    Empty { verb: String },
    #[error("zeno wrote something that is not UTF-8")]
    NotText(#[source] std::string::FromUtf8Error),
    #[error("out of date: {files}; run `cargo xtask generate`")]
    Stale { files: String },
}
