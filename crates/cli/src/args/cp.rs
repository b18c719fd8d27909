//! `cp`, and how a place is written.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::which::{BadWhich, Which};

/// Copy files between this machine and a sandbox
///
/// `SANDBOX:/PATH` is a place in a sandbox, `-` is standard input or output, anything else is a path on this
/// machine (write `./a:b` for a name with a colon). Folders are copied with all they hold, permissions are
/// kept. A folder that exists as DST takes SRC inside.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno cp web:/etc/hosts .
  zeno cp -u root fixtures web:/srv
  echo hello | zeno cp - web:/tmp/greeting
  zeno cp web:/var/log/app.log - | less
  zeno cp web:/srv/data worker:/srv/data")]
pub(crate) struct Cp {
    /// Where from
    #[arg(value_name = "SRC")]
    pub(crate) from: Place,
    /// Where to
    #[arg(value_name = "DST")]
    pub(crate) to: Place,
    /// Act as this user in the sandbox: name, uid or uid:gid
    #[arg(short, long)]
    pub(crate) user: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Sandbox { which: Which, path: String },
    Host(PathBuf),
    Standard,
}

impl FromStr for Place {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<Self, BadPlace> {
        if text == "-" {
            return Ok(Self::Standard);
        }
        match text.split_once(':') {
            // A slash before the colon makes it a path on this machine, as in Docker.
            Some((which, path)) if !which.contains('/') => {
                let which = which.parse().map_err(BadPlace::Which)?;
                if path.starts_with('/') {
                    Ok(Self::Sandbox { which, path: path.to_owned() })
                } else {
                    Err(BadPlace::Relative { which, path: path.to_owned() })
                }
            }
            Some(_) | None => Ok(Self::Host(PathBuf::from(text))),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BadPlace {
    #[error("{0}; write `./NAME` for a file on this machine with a colon in its name")]
    Which(BadWhich),
    #[error("`{path}` is relative: write the whole path, for example {which}:/srv/{path}")]
    Relative { which: Which, path: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let sandbox =
            |which: &str, path: &str| Place::Sandbox { which: which.parse().unwrap(), path: path.into() };
        let parse = |text: &str| text.parse::<Place>();
        assert_eq!(parse("web:/srv").unwrap(), sandbox("web", "/srv"));
        assert_eq!(parse("-").unwrap(), Place::Standard);
        assert_eq!(parse("src").unwrap(), Place::Host("src".into()));
        assert_eq!(parse("./a:b").unwrap(), Place::Host("./a:b".into()));
        for bad in ["web:srv", "Web:/srv", ":/srv", "web:"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
