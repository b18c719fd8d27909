//! What `run` and `exec` share: the command, and where it finds itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use model::exec::Text;
use model::units::{Size, Span};

use crate::keys::DetachKeys;

#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct CommandArgs {
    #[command(flatten)]
    pub(crate) context: ContextArgs,
    #[command(flatten)]
    pub(crate) streams: StreamArgs,
    /// End the command, and all it started, after this time (exit code 124)
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// End the command when it has written this much
    #[arg(long, value_name = "SIZE")]
    pub(crate) output_limit: Option<Size>,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) argv: Vec<OsString>,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct ContextArgs {
    /// Folder to start in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Set a variable, or hand on the caller's (repeatable)
    #[arg(short, long, value_name = "K[=V]", value_parser = OsStringValueParser::new().try_map(EnvArg::parse))]
    pub(crate) env: Vec<EnvArg>,
    /// Become this user: name, uid or uid:gid
    #[arg(short, long)]
    pub(crate) user: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct StreamArgs {
    /// Hand on standard input, even from a terminal
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Run on a terminal (done by itself when standard input and output are terminals)
    #[arg(short, long, conflicts_with = "no_tty")]
    pub(crate) tty: bool,
    /// Run on pipes, even at a terminal
    #[arg(short = 'T', long)]
    pub(crate) no_tty: bool,
}

/// A terminal that can be left while its command goes on.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct LeaveArgs {
    /// Keys that leave the terminal and let the command go on if its sandbox stays, or none
    #[arg(long, value_name = "KEYS", default_value = DetachKeys::DEFAULT)]
    pub(crate) detach_keys: DetachKeys,
}

/// `K=V`, or `K` for the caller's own value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnvArg {
    Set { name: Text, value: Text },
    Caller { name: Text },
}

impl EnvArg {
    fn parse(text: OsString) -> Result<Self, BadEnv> {
        let bytes = text.into_vec();
        let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
            None => (&bytes[..], None),
        };
        if name.is_empty() {
            return Err(BadEnv { text: OsStr::from_bytes(&bytes).to_owned() });
        }
        let name = Text(name.to_vec());
        Ok(match value {
            Some(value) => Self::Set { name, value: Text(value.to_vec()) },
            None => Self::Caller { name },
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{}` names no variable: write NAME=VALUE, or NAME for the caller's value", text.display())]
pub(crate) struct BadEnv {
    text: OsString,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_and_without_value() {
        let parse = |text: &str| EnvArg::parse(text.into());
        assert_eq!(parse("A=b=c").unwrap(), EnvArg::Set { name: "A".into(), value: "b=c".into() });
        assert_eq!(parse("A=").unwrap(), EnvArg::Set { name: "A".into(), value: "".into() });
        assert_eq!(parse("A").unwrap(), EnvArg::Caller { name: "A".into() });
        assert!(parse("=x").is_err());
        assert!(parse("").is_err());
    }
}
