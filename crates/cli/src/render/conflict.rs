//! A path that both sides changed: what each of them did, and the lines in which they are in each other's way.

use std::path::Path;

use jiff::Timestamp;
use model::diff::Entry;
use model::exec::Text;
use model::files::FileKind;
use model::promotion::{Assessment, Conflict, ConflictReason, Did, Excerpt, Hunk, Side};
use model::units::Size;

use super::paint::Paint;
use super::promotion::shown;
use super::words::{clean, count};
use crate::args::which::Which;

/// All of them, and what can be done.
pub(super) fn conflicts(assessment: &Assessment, sandbox: &Which, paint: Paint) -> String {
    let mut text = String::new();
    for conflict in &assessment.conflicts {
        text += &format!("{} {}\n", paint.red("conflict"), shown(&conflict.path));
        text += &format!(
            "  {}\n  the sandbox {}, reality {}\n",
            conflict.reason.sentence(),
            did(conflict.ours.did),
            did(conflict.theirs.did)
        );
        text += &lines(conflict, paint);
        text += &more(conflict, assessment.root.as_ref(), sandbox);
    }
    text
}

/// What both have there: the lines that clash, or what can be said of something that is no text.
fn lines(conflict: &Conflict, paint: Paint) -> String {
    if !conflict.hunks.is_empty() {
        return conflict.hunks.iter().map(|hunk| clash(hunk, paint)).collect();
    }
    // Of branches, git says more than the files do that name them.
    if conflict.reason == ConflictReason::Branches || conflict.more_lines > 0 {
        return String::new();
    }
    let owner = |side: &Side| side.entry.as_ref().map(|entry| (entry.uid, entry.gid));
    let with_owner = owner(&conflict.ours) != owner(&conflict.theirs);
    let has = |who: &str, side: &Side| format!("  {who} has {}\n", look(side, with_owner));
    has("the sandbox", &conflict.ours) + &has("reality", &conflict.theirs)
}

/// One place, as `git merge` writes it with `diff3`, and with the numbers of the lines.
fn clash(hunk: &Hunk, paint: Paint) -> String {
    let Hunk { before, ours, theirs } = hunk;
    let label = |mark: &str, who: &str, excerpt: Option<&Excerpt>| {
        let place = excerpt.map_or_else(|| "has no such file".to_owned(), place);
        format!("  {}\n", paint.yellow(&format!("{mark} {who}: {place}")))
    };
    let mut text = label("<<<<<<<", "the sandbox", ours.as_ref()) + &told(ours.as_ref());
    if let Some(before) = before {
        text += &(label("|||||||", "before", Some(before)) + &told(Some(before)));
    }
    text += &format!("  {}\n", paint.yellow("======="));
    text + &told(theirs.as_ref()) + &label(">>>>>>>", "reality", theirs.as_ref())
}

fn place(excerpt: &Excerpt) -> String {
    let Excerpt { first, count, .. } = excerpt;
    match count {
        0 => format!("nothing before line {first}"),
        1 => format!("line {first}"),
        count => format!("lines {first}-{}", first + count - 1),
    }
}

fn told(excerpt: Option<&Excerpt>) -> String {
    let Some(excerpt) = excerpt else { return String::new() };
    let mut text = String::new();
    for line in &excerpt.lines {
        let line = line.display();
        let whole = line.strip_suffix('\n');
        // A tab plays no tricks on a terminal.
        let words: Vec<_> = whole.unwrap_or(&line).split('\t').map(clean).collect();
        text += &format!("  {}\n", words.join("\t"));
        if whole.is_none() {
            text += "  \\ No newline at end of file\n";
        }
    }
    match excerpt.untold() {
        0 => text,
        untold => text + &format!("  ... {}\n", count(untold, "more line", "more lines")),
    }
}

/// How to see what is not shown.
fn more(conflict: &Conflict, root: Option<&Text>, sandbox: &Which) -> String {
    if conflict.more_lines == 0 {
        return String::new();
    }
    let root = root.map(|root| Path::new(root.as_os_str())).unwrap_or(Path::new("/"));
    let path = shown(&Text::from(root.join(conflict.path.as_os_str())));
    let number = count(conflict.more_lines, "more line", "more lines");
    format!(
        "  {number} in conflict, not shown here\n  try: the sandbox's: zeno diff {sandbox} --patch -- {path}; \
         reality's: {path} itself\n"
    )
}

fn look(side: &Side, with_owner: bool) -> String {
    let Some(entry) = &side.entry else { return "nothing there".to_owned() };
    let Entry { kind, size, mode, uid, gid, target } = entry;
    let mut parts = vec![match kind {
        FileKind::File => format!("a file of {}", Size(*size).rough()),
        FileKind::Directory => "a folder".to_owned(),
        FileKind::Symlink => {
            format!("a link to {}", target.as_ref().map(shown).unwrap_or_default())
        }
        FileKind::Fifo => "a pipe".to_owned(),
        FileKind::Socket => "a socket".to_owned(),
        FileKind::Device => "a device".to_owned(),
    }];
    if *kind != FileKind::Symlink {
        parts.push(format!("mode {mode:03o}"));
    }
    if with_owner {
        parts.push(format!("owner {uid}:{gid}"));
    }
    parts.extend(side.modified.map(written));
    parts.join(", ")
}

fn written(when: Timestamp) -> String {
    when.strftime("written %Y-%m-%dT%H:%M:%SZ").to_string()
}

fn did(did: Did) -> &'static str {
    match did {
        Did::Nothing => "did nothing",
        Did::Create => "created it",
        Did::Edit => "edited it",
        Did::Delete => "deleted it",
        Did::Attributes => "changed its permissions or attributes",
        Did::ChangeType => "turned it into something else",
        Did::Something => "changed it somehow",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(first: u64, count: u64, lines: &[&str]) -> Option<Excerpt> {
        Some(Excerpt { first, count, lines: lines.iter().map(|line| (*line).into()).collect() })
    }

    fn side(did: Did, kind: FileKind, size: u64) -> Side {
        let entry = Entry { kind, size, mode: 0o644, uid: 1000, gid: 1000, target: None };
        let modified = Some("2026-05-01T11:56:30Z".parse().unwrap());
        Side { did, entry: Some(entry), modified }
    }

    fn conflict(path: &str, reason: ConflictReason, hunks: Vec<Hunk>, more_lines: u64) -> Conflict {
        Conflict {
            path: path.into(),
            reason,
            before: None,
            ours: side(Did::Edit, FileKind::File, 12),
            theirs: side(Did::Edit, FileKind::File, 2048),
            ours_possible: true,
            hunks,
            more_lines,
        }
    }

    #[track_caller]
    fn shown_as(conflicts: Vec<Conflict>) -> String {
        let root = Some("/home/ada/src/app".into());
        let assessment = Assessment { root, conflicts, ..Assessment::default() };
        super::conflicts(&assessment, &"web".parse().unwrap(), Paint::Plain)
    }

    #[test]
    fn the_lines_of_both_sides() {
        let both = Hunk {
            before: excerpt(2, 1, &["two\n"]),
            ours: excerpt(2, 2, &["\tTWO\x1b[2J\n", "more\n"]),
            theirs: excerpt(3, 0, &[]),
        };
        let end = Hunk {
            before: excerpt(9, 1, &["end\n"]),
            ours: excerpt(10, 30, &["END\n"]),
            theirs: excerpt(8, 1, &["end"]),
        };
        insta::assert_snapshot!(shown_as(vec![conflict("src/a.rs", ConflictReason::SameLines, vec![both, end], 31)]), @r"
    conflict src/a.rs
      both changed the same lines, or it is not text
      the sandbox edited it, reality edited it
      <<<<<<< the sandbox: lines 2-3
      	TWO\u{1b}[2J
      more
      ||||||| before: line 2
      two
      =======
      >>>>>>> reality: nothing before line 3
      <<<<<<< the sandbox: lines 10-39
      END
      ... 29 more lines
      ||||||| before: line 9
      end
      =======
      end
      \ No newline at end of file
      >>>>>>> reality: line 8
      31 more lines in conflict, not shown here
      try: the sandbox's: zeno diff web --patch -- /home/ada/src/app/src/a.rs; reality's: /home/ada/src/app/src/a.rs itself
    ");
        let gone = Hunk { before: excerpt(1, 1, &["a\n"]), ours: excerpt(1, 1, &["b\n"]), theirs: None };
        let theirs = Side { did: Did::Delete, entry: None, modified: None };
        let gone = Conflict { theirs, ..conflict("b", ConflictReason::ChangedAndGone, vec![gone], 0) };
        let created = Hunk { before: None, ours: excerpt(1, 1, &["x\n"]), theirs: excerpt(1, 1, &["y\n"]) };
        let created = conflict("c", ConflictReason::BothCreated, vec![created], 0);
        insta::assert_snapshot!(shown_as(vec![gone, created]), @"
    conflict b
      one changed what the other deleted or turned into something else
      the sandbox edited it, reality deleted it
      <<<<<<< the sandbox: line 1
      b
      ||||||| before: line 1
      a
      =======
      >>>>>>> reality: has no such file
    conflict c
      both created it, differently
      the sandbox edited it, reality edited it
      <<<<<<< the sandbox: line 1
      x
      =======
      y
      >>>>>>> reality: line 1
    ");
    }

    #[test]
    fn what_is_no_text() {
        let plain = conflict("logo.png", ConflictReason::SameLines, Vec::new(), 0);
        let mut link = conflict("d", ConflictReason::ChangedAndGone, Vec::new(), 0);
        let target = Some("else\nwhere".into());
        let entry = Entry { kind: FileKind::Symlink, size: 9, mode: 0o777, uid: 0, gid: 0, target };
        link.ours = Side { did: Did::ChangeType, entry: Some(entry), modified: None };
        link.theirs = side(Did::ChangeType, FileKind::Directory, 0);
        insta::assert_snapshot!(shown_as(vec![plain, link]), @r"
    conflict logo.png
      both changed the same lines, or it is not text
      the sandbox edited it, reality edited it
      the sandbox has a file of 12 B, mode 644, written 2026-05-01T11:56:30Z
      reality has a file of 2.0 KiB, mode 644, written 2026-05-01T11:56:30Z
    conflict d
      one changed what the other deleted or turned into something else
      the sandbox turned it into something else, reality turned it into something else
      the sandbox has a link to else\nwhere, owner 0:0
      reality has a folder, mode 644, owner 1000:1000, written 2026-05-01T11:56:30Z
    ");
    }
}
