//! What the words of `zeno diff A WORD...` mean: another sandbox or a snapshot, or paths.

use std::io;
use std::path::Path;

use model::diff::Detail;

use super::{absolute, candidate};
use crate::api::Api;
use crate::args::diff::Diff;
use crate::args::which::Which;
use crate::failure::Failure;

/// What is asked for, once it is clear what each word means.
pub(super) struct Asked {
    pub(super) one: Which,
    pub(super) with: Option<Other>,
    /// Absolute.
    pub(super) paths: Vec<Vec<u8>>,
}

/// What it is compared with.
pub(super) struct Other {
    pub(super) which: Which,
    /// As it was typed.
    pub(super) called: Which,
}

pub(super) async fn asked(api: &Api, typed: &Diff) -> Result<Asked, Failure> {
    let one = candidate::or_sandbox(api, &typed.sandbox).await?;
    let (mut with, mut words) = (typed.with.clone(), typed.words.as_slice());
    if with.is_none()
        && let Some((first, rest)) = words.split_first()
        && let Some(other) = name(first)
        && is_other(api, typed, &one, &other, first).await?
    {
        (with, words) = (Some(other), rest);
    }
    let with = match with {
        // A snapshot may have the name as well, and comes before a candidate.
        Some(called) if called.candidate().is_none() && api.has(&called).await? => {
            Some(Other { which: called.clone(), called })
        }
        Some(called) => Some(Other { which: candidate::or_sandbox(api, &called).await?, called }),
        None => None,
    };
    Ok(Asked { one, with, paths: absolute(&[words, &typed.paths].concat())? })
}

/// Could it be the name or id of a sandbox or snapshot, or a candidate? Not with a dot in front, and with a slash only
/// behind the id of a race.
fn name(word: &Path) -> Option<Which> {
    Which::or_candidate(word.to_str().filter(|word| !word.starts_with('.'))?).ok()
}

/// Is it the other, not a path? What nobody knows, or what may be either, is no answer: it would be a wrong one.
async fn is_other(api: &Api, typed: &Diff, one: &Which, other: &Which, word: &Path) -> Result<bool, Failure> {
    if word.as_os_str() != other.to_string().as_str() {
        // `sandbox:x` says outright what is meant.
        return Ok(true);
    }
    let named = || (typed.sandbox.to_string(), other.to_string());
    let is_known = match other.candidate() {
        Some(_) => true,
        None => api.has(other).await? || candidate::find(api, other).await?.is_some(),
    };
    if is_known {
        if is_changed(api, one, word).await? {
            let (sandbox, word) = named();
            return Err(Failure::OtherOrPath { sandbox, word });
        }
        return Ok(true);
    }
    if is_here(word) || is_changed(api, one, word).await? {
        return Ok(false);
    }
    let (sandbox, word) = named();
    Err(Failure::NeitherOtherNorPath { sandbox, word })
}

/// Did the sandbox change anything there since it was made? That is so as well of what it has and this machine has not.
async fn is_changed(api: &Api, one: &Which, word: &Path) -> Result<bool, Failure> {
    let path = absolute(&[word.to_owned()])?;
    Ok(!api.diff(one, None, &path, Detail::Paths).await?.is_empty())
}

/// Is there something of this name on the real machine? What cannot be looked at is there.
fn is_here(word: &Path) -> bool {
    match std::fs::symlink_metadata(word) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_word_may_be_the_other() {
        for (word, fits) in [
            ("web", true),
            ("sandbox:web", true),
            ("README", false),
            ("./web", false),
            (".", false),
            ("..", false),
            (".git", false),
            ("src/web", false),
            ("/etc", false),
        ] {
            assert_eq!(name(Path::new(word)).is_some(), fits, "{word}");
        }
    }
}
