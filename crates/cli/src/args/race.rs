//! `race` and `races`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use model::Name;
use model::id::BadName;
use model::net::Net;
use model::race::Pick;
use model::units::Span;

use super::sandbox::LimitArgs;

/// Try several things from one state, check each, and pick the best
///
/// Every candidate works in a copy of its own of the same state, so that they cannot disturb each other, and the checks run
/// on what it made of it. Among those that pass, `--pick` decides. The others stay until their time is over, to be looked
/// at: `zeno diff A B`, `zeno shell`. Exits with 1 if none passes.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno race --try deps='npm update left-pad' --try revert='git revert -n HEAD' --check 'npm test'
  zeno race --candidate patch:fix.diff --candidate ref:origin/fix --candidate sandbox:web
  zeno race --try a='./fix a' --try b='./fix b' --check 'make test' --score './bench' --pick score")]
pub(crate) struct Race {
    /// A candidate: a line for `sh` (repeatable)
    #[arg(long = "try", value_name = "NAME=CMD")]
    pub(crate) tries: Vec<Try>,
    /// A candidate: a sandbox, a patch, or a commit, branch or tag; `NAME=` before it names it (repeatable)
    #[arg(long = "candidate", value_name = "sandbox:NAME|patch:FILE|ref:REF")]
    pub(crate) candidates: Vec<CandidateArg>,
    /// Start from this sandbox or snapshot instead of the workspace as it is now
    #[arg(long, value_name = "SANDBOX|SNAPSHOT")]
    pub(crate) from: Option<String>,
    /// A line for `sh` that has to exit with 0, instead of the checks of zeno.yaml; the winner is promoted if it passes both
    /// (repeatable)
    #[arg(long = "check", value_name = "CMD")]
    pub(crate) commands: Vec<String>,
    /// A line for `sh` that prints a number: the more, the better
    #[arg(long, value_name = "CMD")]
    pub(crate) score: Option<String>,
    /// Who wins among those that pass; `smallest` if not given, `score` if there is one
    #[arg(long, value_parser = PossibleValuesParser::new(["fastest", "smallest", "score", "ask"]).map(|text| pick(&text)))]
    pub(crate) pick: Option<Pick>,
    /// Bring the winner into reality: after asking (at a terminal, if not given), at once, or not
    #[arg(long, value_parser = PossibleValuesParser::new(["ask", "yes", "no"]).map(|text| consent(&text)))]
    pub(crate) promote: Option<Consent>,
    /// How long the command of a candidate may take; 10m if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// Commands at the same time; as many as there are processors if not given
    #[arg(long, value_name = "N")]
    pub(crate) parallel: Option<u32>,
    /// What candidates may reach, as for `zeno run`: none, allow:NAME[:PORT],..., allow:registries, open, deny or host
    #[arg(long, value_name = "NET")]
    pub(crate) net: Option<Net>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// May reality be changed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Ask,
    Yes,
    No,
}

fn consent(text: &str) -> Consent {
    match text {
        "yes" => Consent::Yes,
        "no" => Consent::No,
        _ => Consent::Ask,
    }
}

/// List what came of races
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Races {}

/// `NAME=CMD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Try {
    pub(crate) name: Name,
    pub(crate) run: String,
}

impl FromStr for Try {
    type Err = BadTry;

    fn from_str(text: &str) -> Result<Self, BadTry> {
        let (name, run) = text.split_once('=').ok_or_else(|| BadTry::Shape { text: text.to_owned() })?;
        Ok(Self { name: name.parse().map_err(BadTry::Name)?, run: run.to_owned() })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BadTry {
    #[error("`{text}` has no name: write for example fix='make fix'")]
    Shape { text: String },
    #[error(transparent)]
    Name(BadName),
}

/// `[NAME=]KIND:VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CandidateArg {
    pub(crate) name: Name,
    pub(crate) source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Sandbox(String),
    Patch(PathBuf),
    Ref(String),
}

impl FromStr for CandidateArg {
    type Err = BadCandidate;

    fn from_str(text: &str) -> Result<Self, BadCandidate> {
        let shape = || BadCandidate::Shape { text: text.to_owned() };
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains(':') => (Some(name), rest),
            Some(_) | None => (None, text),
        };
        let (kind, value) = rest.split_once(':').filter(|(_, value)| !value.is_empty()).ok_or_else(shape)?;
        let source = match kind {
            "sandbox" => Source::Sandbox(value.to_owned()),
            "patch" => Source::Patch(value.into()),
            "ref" => Source::Ref(value.to_owned()),
            _ => return Err(shape()),
        };
        let name = name.map_or_else(|| source.name(), str::to_owned);
        Ok(Self { name: name.parse().map_err(BadCandidate::Name)?, source })
    }
}

impl Source {
    /// What to call it where nobody says.
    fn name(&self) -> String {
        let text = match self {
            Self::Sandbox(text) | Self::Ref(text) => text.clone(),
            Self::Patch(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        text.to_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BadCandidate {
    #[error("`{text}` is not a candidate: write for example sandbox:web, patch:fix.diff or ref:origin/fix")]
    Shape { text: String },
    #[error(transparent)]
    Name(BadName),
}

fn pick(text: &str) -> Pick {
    match text {
        "fastest" => Pick::Fastest,
        "score" => Pick::Score,
        "ask" => Pick::Ask,
        _ => Pick::Smallest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_names_of_their_own_or_are_called_after_what_they_are() {
        let name = |text: &str| text.parse::<CandidateArg>().unwrap().name.to_string();
        assert_eq!(name("sandbox:web"), "web");
        assert_eq!(name("patch:../Some Fix.diff"), "some-fix");
        assert_eq!(name("ref:origin/fix"), "origin-fix");
        assert_eq!(name("mine=ref:HEAD~1"), "mine");
        for bad in ["web", "patch:", "thing:x", "A b=ref:x", "ref:~"] {
            assert!(bad.parse::<CandidateArg>().is_err(), "{bad}");
        }
        assert_eq!("a=b=c".parse::<Try>().unwrap().run, "b=c");
        assert!("make".parse::<Try>().is_err());
    }
}
