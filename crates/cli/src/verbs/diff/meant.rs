//! What the words of `zeno diff A WORD...` mean: another sandbox or a snapshot, or paths.

use std::io;
use std::path::Path;

use model::diff::Detail;

use super::absolute;
use crate::api::Api;
use crate::args::diff::Diff;
use crate::args::which::Which;
use crate::failure::Failure;

/// What is asked for, once it is clear what each word means.
pub(super) struct Asked {
    pub(super) with: Option<Which>,
    /// Absolute.
    pub(super) paths: Vec<Vec<u8>>,
}

pub(super) async fn asked(api: &Api, typed: &Diff) -> Result<Asked, Failure> {
    let (mut with, mut words) = (typed.with.clone(), typed.words.as_slice());
    if with.is_none()
        && let Some((first, rest)) = words.split_first()
        && let Some(other) = name(first)
        && is_other(api, typed, &other, first).await?
    {
        (with, words) = (Some(other), rest);
    }
    Ok(Asked { with, paths: absolute(&[words, &typed.paths].concat())? })
}

/// Could it be the name or id of a sandbox or snapshot? Not with a slash in it, nor with a dot in front.
fn name(word: &Path) -> Option<Which> {
    word.to_str().filter(|word| !word.starts_with('.'))?.parse().ok()
}

/// Is it the other, not a path? What nobody knows, or what may be either, is no answer: it would be a wrong one.
async fn is_other(api: &Api, typed: &Diff, other: &Which, word: &Path) -> Result<bool, Failure> {
    if word.as_os_str() != other.to_string().as_str() {
        // `sandbox:x` says outright what is meant.
        return Ok(true);
    }
    let named = || (typed.sandbox.to_string(), other.to_string());
    if api.has(other).await? {
        if is_changed(api, typed, word).await? {
            let (sandbox, word) = named();
            return Err(Failure::OtherOrPath { sandbox, word });
        }
        return Ok(true);
    }
    if is_here(word) || is_changed(api, typed, word).await? {
        return Ok(false);
    }
    let (sandbox, word) = named();
    Err(Failure::NeitherOtherNorPath { sandbox, word })
}

/// Did the sandbox change anything there since it was made? That is so as well of what it has and this machine has not.
async fn is_changed(api: &Api, typed: &Diff, word: &Path) -> Result<bool, Failure> {
    let path = absolute(&[word.to_owned()])?;
    Ok(!api.diff(&typed.sandbox, None, &path, Detail::Paths).await?.is_empty())
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
