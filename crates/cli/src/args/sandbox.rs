//! What `run` and `create` share: the sandbox that is to be made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use model::Name;
use model::limits::OnExpire;
use model::net::{Net, SecretFor};
use model::sandbox::Actor;
use model::units::{Cpus, Size, Span};

#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArgs {
    /// Name of the sandbox
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// What it may reach: none, allow:NAME[:PORT],..., allow:registries, allow:NAME.zeno:PORT (another sandbox of the
    /// workspace), open (all that is public), deny or host
    #[arg(long, value_name = "NET")]
    pub(crate) net: Option<Net>,
    /// Keep this variable outside: inside is a placeholder, and these hosts get your value (repeatable)
    #[arg(long = "secret", value_name = "NAME@HOST,...")]
    pub(crate) secrets: Vec<SecretFor>,
    /// Freeze this folder instead of the git worktree around the current one
    #[arg(long, value_name = "DIR", conflicts_with = "no_workspace")]
    pub(crate) workspace: Option<PathBuf>,
    /// Freeze nothing: read everything live
    #[arg(long)]
    pub(crate) no_workspace: bool,
    /// Show a masked path all the same (repeatable; `zeno status` lists them)
    #[arg(long, value_name = "PATH")]
    pub(crate) unmask: Vec<String>,
    /// Allow user namespaces inside (Chromium's own sandbox needs them)
    #[arg(long)]
    pub(crate) nested: bool,
    /// Label it (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<Label>,
    /// Who asks: a person, an agent or automation; else ZENO_ACTOR, or what it looks like
    #[arg(long, value_parser = PossibleValuesParser::new(["adm", "agt", "atm"]).map(|text| actor(&text)))]
    pub(crate) actor: Option<Actor>,
    /// On whose behalf, in your own words
    #[arg(long, value_name = "TEXT")]
    pub(crate) consumer: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Processors, for example 1.5
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<Cpus>,
    /// Memory, for example 512MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// Processes and threads at once
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<u32>,
    /// What it may write to disk, for example 4G
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<Size>,
    /// Lifetime, for example 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<Span>,
    /// Lifetime after the last command ended
    #[arg(long, value_name = "TIME")]
    pub(crate) idle: Option<Span>,
    /// What happens at the end of its life
    #[arg(long, value_parser = PossibleValuesParser::new(["stop", "destroy"]).try_map(|text| text.parse::<OnExpire>()))]
    pub(crate) on_expire: Option<OnExpire>,
    /// Accept limits that this machine cannot enforce; they become caveats
    #[arg(long)]
    pub(crate) best_effort: bool,
}

/// `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl FromStr for Label {
    type Err = BadLabel;

    fn from_str(text: &str) -> Result<Self, BadLabel> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) | None => Err(BadLabel { text: text.to_owned() }),
        }
    }
}

/// The last word on a key holds.
pub(crate) fn labels(labels: &[Label]) -> BTreeMap<String, String> {
    labels.iter().map(|Label { key, value }| (key.clone(), value.clone())).collect()
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a label: write for example team=web")]
pub(crate) struct BadLabel {
    text: String,
}

pub(super) fn actor(text: &str) -> Actor {
    Actor::named(text).expect("one of the possible values")
}
