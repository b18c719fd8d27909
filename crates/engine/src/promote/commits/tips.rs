//! Where branches, tags, HEAD and stashes of the sandbox stand, as far as that is not where they stood.
//!
//! Read as git reads them: a file of its own comes before the line in `packed-refs`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::files::FileKind;

use super::host::Host;
use super::names::{is_id, is_ref};
use super::{AskCommits, CommitsError};
use crate::diff::{Both, Comparison, Version};

/// A ref that is not where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    /// `refs/heads/main`, `HEAD` or `stash@{0}`.
    pub(super) inside: String,
    pub(super) outside: String,
    pub(super) id: String,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tips: Vec<Tip>,
    /// How many are not as git would have made them.
    pub(super) odd: u64,
    /// The refs are kept somewhere else, and something has changed there.
    pub(super) tables: bool,
    /// Names of others that moved and are not brought.
    pub(super) left: Vec<String>,
}

/// Everything that differs in the git folder, by absolute path.
pub(super) type Changed<'a> = BTreeMap<PathBuf, Both<'a>>;

pub(super) fn find(ask: &AskCommits<'_>, host: &Host, both: &Changed<'_>) -> Result<Found, CommitsError> {
    let tables = host.common.join("reftable");
    let tables = both.keys().any(|path| path.starts_with(&tables));
    let mut found = Found { tips: Vec::new(), odd: 0, tables, left: Vec::new() };
    let refs = Refs::read(ask.comparison, host, both)?;
    for inside in refs.candidates() {
        let Some(name) = inside.strip_prefix("refs/").or(refs.of_worktree(&inside)) else { continue };
        // Before anything is looked up by it.
        if !is_ref(name) {
            found.odd += 1;
            continue;
        }
        let Some(after) = refs.after(&inside)? else { continue };
        if inside == STASH || refs.before(&inside)?.as_ref() == Some(&after) {
            continue;
        }
        match after {
            Value::Id(id) => match parted(&inside) {
                Some((kind, name)) => {
                    let outside = format!("refs/zeno/{}/{kind}/{name}", ask.sandbox);
                    found.tips.push(Tip { inside, outside, id });
                }
                None => found.left.push(inside),
            },
            // It stands for another, which comes by itself if it moved.
            Value::Symbolic(_) => {}
            Value::Odd => found.odd += 1,
        }
    }
    if let Some(id) = refs.detached()? {
        let outside = format!("refs/zeno/{}/{HEAD}", ask.sandbox);
        found.tips.push(Tip { inside: HEAD.to_owned(), outside, id });
    }
    for (number, stash) in refs.stashes()?.into_iter().enumerate() {
        match stash {
            Stash::Known => {}
            Stash::New(id) => {
                let outside = format!("refs/zeno/{}/stash/{number}", ask.sandbox);
                found.tips.push(Tip { inside: format!("stash@{{{number}}}"), outside, id });
            }
            Stash::Odd => found.odd += 1,
        }
    }
    Ok(found)
}

/// What was put aside with `git stash`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stash {
    /// It was there before.
    Known,
    New(String),
    Odd,
}

/// The kind of a ref that is brought, and what it is called among them.
fn parted(inside: &str) -> Option<(&str, &str)> {
    let (kind, name) = inside.strip_prefix("refs/")?.split_once('/')?;
    matches!(kind, "heads" | "tags").then_some((kind, name))
}

/// What a ref says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Id(String),
    /// It stands for this one.
    Symbolic(String),
    Odd,
}

impl Value {
    fn of(text: &str) -> Self {
        let text = text.trim_end();
        match text.strip_prefix("ref:") {
            Some(name) => Self::Symbolic(name.trim_start().to_owned()),
            None if is_id(text) => Self::Id(text.to_owned()),
            None => Self::Odd,
        }
    }
}

/// The refs of the sandbox, before and after.
struct Refs<'a> {
    comparison: &'a Comparison,
    host: &'a Host,
    both: &'a Changed<'a>,
    packed_before: BTreeMap<String, Value>,
    packed_after: BTreeMap<String, Value>,
}

impl<'a> Refs<'a> {
    fn read(comparison: &'a Comparison, host: &'a Host, both: &'a Changed<'a>) -> Result<Self, CommitsError> {
        let path = host.common.join("packed-refs");
        let before = text(&path, before(comparison, &path)?.as_ref(), LONGEST_LIST)?;
        let packed_before = packed(before.as_deref());
        let packed_after = match both.get(&path) {
            Some(both) => packed(text(&path, both.after.as_ref(), LONGEST_LIST)?.as_deref()),
            None => packed_before.clone(),
        };
        Ok(Self { comparison, host, both, packed_before, packed_after })
    }

    /// Names of all that may have moved.
    fn candidates(&self) -> BTreeSet<String> {
        let own = self.both.keys().filter_map(|path| path.strip_prefix(&self.host.common).ok());
        let mut names: BTreeSet<String> = own.map(|name| name.to_string_lossy().into_owned()).collect();
        let moved = self.packed_after.iter().filter(|(name, id)| self.packed_before.get(*name) != Some(id));
        names.extend(moved.map(|(name, _)| name.clone()));
        names
    }

    fn before(&self, name: &str) -> Result<Option<Value>, CommitsError> {
        let path = self.host.common.join(name);
        let own = text(&path, before(self.comparison, &path)?.as_ref(), LONGEST_REF)?;
        Ok(own.map(|text| Value::of(&text)).or_else(|| self.packed_before.get(name).cloned()))
    }

    fn after(&self, name: &str) -> Result<Option<Value>, CommitsError> {
        let path = self.host.common.join(name);
        let own = match self.both.get(&path) {
            Some(both) => text(&path, both.after.as_ref(), LONGEST_REF)?,
            None => text(&path, before(self.comparison, &path)?.as_ref(), LONGEST_REF)?,
        };
        Ok(own.map(|text| Value::of(&text)).or_else(|| self.packed_after.get(name).cloned()))
    }

    /// A name that this is of another worktree of the same repository: its HEAD, or a ref of its own.
    fn of_worktree<'b>(&self, name: &'b str) -> Option<&'b str> {
        let (worktree, rest) = name.strip_prefix("worktrees/")?.split_once('/')?;
        let is_own = self.host.git_dir == self.host.common.join("worktrees").join(worktree);
        (!is_own && (rest == HEAD || rest.starts_with("refs/"))).then_some(name)
    }

    /// All stashes, the last one first. Only the log knows of those before the last.
    fn stashes(&self) -> Result<Vec<Stash>, CommitsError> {
        let log = self.host.common.join("logs").join(STASH);
        let Some(last) = self.after(STASH)? else { return Ok(Vec::new()) };
        let was = text(&log, before(self.comparison, &log)?.as_ref(), LONGEST_LOG)?;
        let is = match self.both.get(&log) {
            Some(both) => text(&log, both.after.as_ref(), LONGEST_LOG)?,
            None => was.clone(),
        };
        let known: BTreeSet<Value> = logged(was.as_deref()).chain(self.before(STASH)?).collect();
        let mut all: Vec<Value> = logged(is.as_deref()).collect();
        if all.last() != Some(&last) {
            all.push(last);
        }
        let told = all.into_iter().rev().map(|value| match value {
            value if known.contains(&value) => Stash::Known,
            Value::Id(id) => Stash::New(id),
            Value::Symbolic(_) | Value::Odd => Stash::Odd,
        });
        Ok(told.collect())
    }

    /// Where HEAD stands, if it is on no branch, and was somewhere else.
    fn detached(&self) -> Result<Option<String>, CommitsError> {
        let path = self.host.git_dir.join(HEAD);
        let Some(both) = self.both.get(&path) else { return Ok(None) };
        let Some(now) = text(&path, both.after.as_ref(), LONGEST_REF)? else { return Ok(None) };
        let Value::Id(now) = Value::of(&now) else { return Ok(None) };
        let was = match text(&path, both.before.as_ref(), LONGEST_REF)?.as_deref().map(Value::of) {
            Some(Value::Symbolic(name)) => self.before(&name)?,
            other => other,
        };
        Ok((was != Some(Value::Id(now.clone()))).then_some(now))
    }
}

fn before<'a>(comparison: &'a Comparison, path: &Path) -> Result<Option<Version<'a>>, CommitsError> {
    comparison.before(path).map_err(|source| CommitsError::Read { path: path.to_owned(), source })
}

/// The text of a file; `None` if it is none.
fn text(path: &Path, version: Option<&Version<'_>>, longest: u64) -> Result<Option<String>, CommitsError> {
    let failed = |source| CommitsError::Read { path: path.to_owned(), source };
    let Some(version) = version.filter(|version| version.entry.kind == FileKind::File) else {
        return Ok(None);
    };
    if version.entry.size > longest {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let mut bytes = Vec::new();
    version
        .contents()
        .and_then(|contents| contents.reader().take(longest).read_to_end(&mut bytes))
        .map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What a ref stood for, oldest first: each line has what was, what came, and who did it.
fn logged(text: Option<&str>) -> impl Iterator<Item = Value> {
    text.unwrap_or_default().lines().map(|line| line.split(' ').nth(1).map_or(Value::Odd, Value::of))
}

/// Lines of an object's name and a ref's; those that begin with something else say more about the one before.
fn packed(text: Option<&str>) -> BTreeMap<String, Value> {
    let lines = text.unwrap_or_default().lines().filter(|line| !line.starts_with(['#', '^']));
    let refs = lines.filter_map(|line| line.split_once(' '));
    refs.map(|(id, name)| (name.to_owned(), Value::of(id))).collect()
}

const HEAD: &str = "HEAD";
const STASH: &str = "refs/stash";
const LONGEST_REF: u64 = 4 << 10;
const LONGEST_LOG: u64 = 4 << 20;
const LONGEST_LIST: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn lines_of_a_list() {
        let listed =
            packed(Some(&format!("# pack-refs\n{ID} refs/heads/a b\n^{ID}\nodd refs/tags/x\n\nnone\n")));
        let expected = [("refs/heads/a b", Value::Id(ID.to_owned())), ("refs/tags/x", Value::Odd)]
            .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(listed, expected.into());
        assert_eq!(Value::of("ref: refs/heads/x\n"), Value::Symbolic("refs/heads/x".to_owned()));
        assert_eq!(parted("refs/heads/a/b"), Some(("heads", "a/b")));
        assert_eq!(parted("refs/remotes/origin/a"), None);
        let log = format!("{ID} {ID} Ada <a@b> 1 +0000\tWIP on main\nodd\n{ID} x Ada\n");
        let expected = [Value::Id(ID.to_owned()), Value::Odd, Value::Odd];
        assert_eq!(logged(Some(&log)).collect::<Vec<_>>(), expected);
    }

    /// Any bytes, and far more often than by chance those that mean something here.
    fn garbage() -> impl Strategy<Value = Vec<u8>> {
        let words = vec![
            ID,
            " ",
            "\n",
            "\r\n",
            "ref: ",
            "refs/heads/",
            "refs/tags/",
            "..",
            "/",
            "a",
            "#",
            "^",
            "@{",
            ".lock",
        ];
        let word = prop_oneof![
            4 => prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..8),
        ];
        vec(word, 0..64).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn whatever_a_sandbox_wrote_only_sound_names_and_ids_are_taken(bytes in garbage()) {
            let text = String::from_utf8_lossy(&bytes);
            let listed = packed(Some(&text));
            for value in listed.values().chain([&Value::of(&text)]) {
                if let Value::Id(id) = value {
                    prop_assert!(is_id(id), "{id:?}");
                }
            }
            for name in listed.keys() {
                if let Some((_, name)) = parted(name).filter(|(_, name)| is_ref(name)) {
                    let parts = Path::new(name).components();
                    prop_assert!(parts.into_iter().all(|part| matches!(part, Component::Normal(_))), "{name:?}");
                    prop_assert!(!name.contains([' ', '\n', '\r', '\0']), "{name:?}");
                }
            }
        }

        #[test]
        fn what_git_wrote_is_read_as_it_was(
            refs in btree_map("refs/(heads|tags|remotes/origin)/[a-zé0-9][a-zé0-9_@+-]{0,20}", "[0-9a-f]{40}", 0..20),
            peeled in any::<bool>(),
        ) {
            let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
            for (name, id) in &refs {
                text += &format!("{id} {name}\n");
                if peeled {
                    text += &format!("^{ID}\n");
                }
            }
            let expected: BTreeMap<_, _> =
                refs.iter().map(|(name, id)| (name.clone(), Value::Id(id.clone()))).collect();
            prop_assert_eq!(packed(Some(&text)), expected);
            for (name, id) in &refs {
                prop_assert_eq!(Value::of(&format!("{id}\n")), Value::Id(id.clone()));
                prop_assert_eq!(Value::of(&format!("ref: {name}\n")), Value::Symbolic(name.clone()));
                let (_, short) = name["refs/".len()..].split_once('/').unwrap();
                prop_assert!(is_ref(short), "{short}");
            }
        }
    }
}
