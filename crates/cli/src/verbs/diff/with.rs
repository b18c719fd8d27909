//! `zeno diff A --with B`: what two sandboxes did differently.
//!
//! Made of both their patches, file by file: what one of them changed alone, and what both changed, but not to the same.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use serde::Serialize;

use crate::api::{Api, Pieces};
use crate::args::diff::Diff;
use crate::args::which::Which;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words::{clean, count};

pub(super) async fn compare(
    api: &Api,
    typed: &Diff,
    other: &Which,
    paths: &[Vec<u8>],
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let mut waiting = Waiting::begin("comparing");
    let from = typed.from.as_ref();
    let one = whole(waiting.watch(api.patch(&typed.sandbox, from, paths)).await?).await?;
    let two = whole(waiting.watch(api.patch(other, from, paths)).await?).await?;
    waiting.end();
    let between = between(&one, &two);
    invocation.answer(&between, |_| render(&between, &typed.sandbox.to_string(), &other.to_string()))?;
    Ok(DONE)
}

/// What two sandboxes changed in their workspaces, without what git ignores.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Between {
    /// Changed by the first alone.
    one: Vec<String>,
    /// Changed by the second alone.
    other: Vec<String>,
    /// Changed by both, to different things.
    different: Vec<String>,
    /// How many files both changed to the same.
    same: u64,
}

fn between(one: &[u8], other: &[u8]) -> Between {
    let (one, mut other) = (sections(one), sections(other));
    let mut between = Between { one: Vec::new(), other: Vec::new(), different: Vec::new(), same: 0 };
    for (file, change) in one {
        match other.remove(&file) {
            None => between.one.push(file),
            Some(theirs) if theirs == change => between.same += 1,
            Some(_) => between.different.push(file),
        }
    }
    between.other = other.into_keys().collect();
    between
}

/// The parts of a patch by the file that they are about.
fn sections(patch: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut sections: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut current = String::new();
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if let Some(files) = line.strip_prefix(b"diff --git ") {
            current = new_name(&String::from_utf8_lossy(files));
        }
        sections.entry(current.clone()).or_default().extend_from_slice(line);
    }
    sections
}

/// `b/x` of `a/x b/x`, or of the same in quotes.
fn new_name(files: &str) -> String {
    let files = files.trim_end();
    let name =
        files.rsplit_once(" b/").or_else(|| files.rsplit_once(" \"b/")).map_or(files, |(_, name)| name);
    name.trim_end_matches('"').to_owned()
}

fn render(between: &Between, one: &str, other: &str) -> String {
    let lines = |word: &str, files: &[String]| -> String {
        files.iter().map(|file| format!("{word}  {}\n", clean(file))).collect()
    };
    let width = one.len().max(other.len()) + 5;
    let only = |name: &str| format!("{:width$}", format!("only {name}"));
    lines(&format!("{:width$}", "different"), &between.different)
        + &lines(&only(one), &between.one)
        + &lines(&only(other), &between.other)
        + &format!("{} changed alike\n", count(between.same, "file", "files"))
}

async fn whole(mut pieces: Pieces) -> Result<Vec<u8>, Failure> {
    let mut patch = Vec::new();
    while let Some(piece) = pieces.next().await {
        patch.extend_from_slice(&piece?);
    }
    Ok(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(files: &[(&str, &str)]) -> Vec<u8> {
        let sections = files.iter().map(|(file, text)| format!("diff --git a/{file} b/{file}\n+{text}\n"));
        sections.collect::<String>().into_bytes()
    }

    #[test]
    fn alone_alike_and_differently() {
        let one = patch(&[("a", "1"), ("b c", "1"), ("same", "x")]);
        let two = patch(&[("b c", "2"), ("d", "1"), ("same", "x")]);
        let between = between(&one, &two);
        insta::assert_snapshot!(render(&between, "first", "web"), @"
        different   b c
        only first  a
        only web    d
        1 file changed alike
        ");
        assert_eq!(new_name("\"a/\\303\" \"b/\\303\"\n"), "\\303");
    }
}
