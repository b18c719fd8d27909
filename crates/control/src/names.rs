//! What a person typed, and which sandbox or snapshot that is.

use std::fmt::Display;

use model::{Name, Problem};

use crate::refusal;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Sandbox,
    Snapshot,
    Promotion,
}

impl Noun {
    /// `sandbox:a` says outright what `a` means among workspaces and services, too.
    pub(crate) fn bare(self, which: &str) -> &str {
        let prefix = match self {
            Self::Sandbox => "sandbox:",
            Self::Snapshot => "snapshot:",
            Self::Promotion => "promotion:",
        };
        which.strip_prefix(prefix).unwrap_or(which)
    }
}

/// One that could be meant.
#[derive(Clone, Debug)]
pub(crate) struct Known<I> {
    pub(crate) id: I,
    pub(crate) name: Option<Name>,
}

/// A whole id, a name, or the beginning of one id only, in this order.
pub(crate) fn resolve<I: Copy + Display>(
    noun: Noun,
    which: &str,
    existing: &[Known<I>],
) -> Result<I, Problem> {
    let which = noun.bare(which);
    let whole = existing.iter().find(|known| {
        known.id.to_string() == which || known.name.as_ref().is_some_and(|name| name.as_str() == which)
    });
    if let Some(known) = whole {
        return Ok(known.id);
    }
    let begins = |known: &&Known<I>| which.len() >= SHORTEST && known.id.to_string().starts_with(which);
    let matches: Vec<_> = existing.iter().filter(begins).collect();
    match matches.as_slice() {
        [only] => Ok(only.id),
        [] => Err(refusal::not_found(noun, which, &near(which, existing))),
        several => {
            Err(refusal::ambiguous(which, &several.iter().map(|known| shown(known)).collect::<Vec<_>>()))
        }
    }
}

fn shown<I: Display>(known: &Known<I>) -> String {
    match &known.name {
        Some(name) => format!("{} ({name})", known.id),
        None => known.id.to_string(),
    }
}

/// Names that differ by a slip of the finger, nearest first.
fn near<I>(which: &str, existing: &[Known<I>]) -> Vec<Name> {
    let names = existing.iter().filter_map(|known| known.name.as_ref());
    // In a short name two slips leave nothing of what was meant.
    let slips = if which.len() <= 4 { 1 } else { 2 };
    let mut near: Vec<_> = names
        .map(|name| (distance(which.as_bytes(), name.as_str().as_bytes()), name))
        .filter(|(distance, _)| *distance <= slips)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

/// Letters to add, drop or change to get from one word to the other (Levenshtein).
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, candidate) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != candidate);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// Two letters of the id's kind and two of its own: shorter beginnings are more often a name with a slip in it.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use model::{Code, SandboxId};

    use super::*;

    fn existing() -> Vec<Known<SandboxId>> {
        let known = |id: &str, name: Option<&str>| Known {
            id: id.parse().unwrap(),
            name: name.map(|name| name.parse().unwrap()),
        };
        vec![
            known("sbaaaaaaaaaaaa", Some("web")),
            known("sbaaaabbbbbbbb", None),
            known("sbcccccccccccc", Some("sbaaaa")),
            known("sbdddddddddddd", Some("worker-1")),
        ]
    }

    #[track_caller]
    fn finds(which: &str, id: &str) {
        assert_eq!(resolve(Noun::Sandbox, which, &existing()).unwrap().to_string(), id);
    }

    #[track_caller]
    fn refuses(which: &str, code: Code, says: &str) {
        let problem = resolve(Noun::Sandbox, which, &existing()).unwrap_err();
        assert_eq!(problem.code, code);
        let text = format!("{} {}", problem.detail, problem.hints.join(" "));
        assert!(text.contains(says), "{text}");
    }

    #[test]
    fn ids_names_and_beginnings() {
        finds("sbaaaaaaaaaaaa", "sbaaaaaaaaaaaa");
        finds("web", "sbaaaaaaaaaaaa");
        finds("sandbox:web", "sbaaaaaaaaaaaa");
        finds("sandbox:sbdd", "sbdddddddddddd");
        finds("sbaaaabb", "sbaaaabbbbbbbb");
        // A name wins over the beginning of an id.
        finds("sbaaaa", "sbcccccccccccc");
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        refuses("sbaa", Code::BadRequest, "sbaaaaaaaaaaaa (web) or sbaaaabbbbbbbb");
        refuses("sbd", Code::NotFound, "`zeno list`");
        refuses("wbe", Code::NotFound, "`zeno list`");
        refuses("wev", Code::NotFound, "did you mean `web`?");
        refuses("wroker-1", Code::NotFound, "did you mean `worker-1`?");
        refuses("", Code::NotFound, "`zeno list`");
    }
}
