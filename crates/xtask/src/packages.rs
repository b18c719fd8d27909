//! Programs of others that a chore needs, and how they get onto the machine.

use std::io::{self, IsTerminal, Write};
use std::process::Command;

use model::env::Environment;

use crate::process::{self, ProcessError};

#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) program: &'static str,
    /// Debian's.
    pub(crate) package: &'static str,
    pub(crate) why: &'static str,
}

/// May packages be installed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Ask,
}

impl Consent {
    /// In CI nobody can be asked.
    pub(crate) fn of(yes: bool) -> Self {
        if yes || Environment::read().ci { Self::Given } else { Self::Ask }
    }
}

/// Installs what is missing, or says exactly what to run.
pub(crate) fn ensure(needs: &[Need], consent: Consent) -> Result<(), NeedsError> {
    let missing: Vec<&Need> = needs.iter().filter(|need| process::find(need.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        println!("missing: {} (package {}): {}", need.program, need.package, need.why);
    }
    let packages = packages(&missing);
    let by_hand = format!("apt-get update && apt-get install -y {}", packages.join(" "));
    if process::find("apt-get").is_none() {
        return Err(NeedsError::NoApt { packages: packages.join(" ") });
    }
    let prefix: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else if process::find("sudo").is_some() {
        &["sudo"]
    } else {
        return Err(NeedsError::NotRoot { by_hand });
    };
    consented(consent, &by_hand)?;
    process::run(&mut apt(prefix, &["update", "-qq"])).map_err(NeedsError::Install)?;
    let install: Vec<&str> =
        ["install", "-y", "-qq", "--no-install-recommends"].into_iter().chain(packages).collect();
    process::run(&mut apt(prefix, &install)).map_err(NeedsError::Install)
}

/// Asks whether this may be run, where there is somebody to ask.
pub(crate) fn consented(consent: Consent, by_hand: &str) -> Result<(), NeedsError> {
    if consent == Consent::Ask && !agreed(by_hand)? {
        return Err(NeedsError::Declined { by_hand: by_hand.to_owned() });
    }
    Ok(())
}

fn packages(missing: &[&Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn apt(prefix: &[&str], args: &[&str]) -> Command {
    // Through `env`, so that sudo does not drop the variable.
    let words: Vec<&str> = prefix
        .iter()
        .chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"])
        .chain(args)
        .copied()
        .collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn agreed(by_hand: &str) -> Result<bool, NeedsError> {
    if !io::stdin().is_terminal() {
        return Err(NeedsError::NobodyToAsk { by_hand: by_hand.to_owned() });
    }
    print!("run `{by_hand}`? [y/N] ");
    io::stdout().flush().map_err(NeedsError::Ask)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(NeedsError::Ask)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NeedsError {
    #[error("packages are missing and you are not root and have no sudo; run as root: {by_hand}")]
    NotRoot { by_hand: String },
    #[error("packages are missing; run: {by_hand}")]
    Declined { by_hand: String },
    #[error("packages are missing and there is no terminal to ask at; pass --yes or run: {by_hand}")]
    NobodyToAsk { by_hand: String },
    #[error("there is no apt-get here; install by hand what these Debian packages hold: {packages}")]
    NoApt { packages: String },
    #[error("cannot ask at the terminal")]
    Ask(#[source] io::Error),
    #[error("installing packages failed")]
    Install(#[source] ProcessError),
}
