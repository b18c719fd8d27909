//! docs/promote.md: what becomes of a path that both sides may have changed, and what is not promoted without being asked.

use model::promotion::{Deed, ExecutesList, ExecutesRule, Ground, KEPT, Outcome, live_outcome, outcome};
use schemars::JsonSchema;
use serde::Serialize;

use super::table::{NOTICE, grid, table};

pub(super) fn page() -> String {
    let mut text = format!("{NOTICE}# Promoting\n\n{INTRODUCTION}");
    text += &format!("What was there before is kept for {} days, for `zeno undo`.\n\n", KEPT.as_hours() / 24);
    text += "## What the sandbox did, and what reality did meanwhile\n\n";
    text +=
        "Rows are what the sandbox did, columns what reality did. A test does every pair on real files.\n";
    for ground in Ground::ALL {
        text += &format!("\n### On {}\n\n", on(ground));
        text += &matrix(ground, outcome);
    }
    text += LIVE;
    for ground in Ground::ALL {
        text += &format!("\n#### On {}\n\n", on(ground));
        text += &matrix(ground, live_outcome);
    }
    text += "\nThe words:\n\n";
    text += &table(["word", "meaning"], [meanings::<Deed>(), meanings::<Outcome>()].concat());
    let ExecutesList { anywhere, paths } = ExecutesList::built_in();
    text += "\n## What executes by itself\n\n";
    text += "These are promoted only with `--allow-executes`: a program reads and runs them without anyone asking.\n";
    text += ELSEWHERE;
    text += "\n### In whatever folder\n\n`*` stands for any characters of one name, a final `**` for all below.\n\n";
    text += &table(["path", "reason"], anywhere.iter().map(rule));
    text += "\n### At these paths\n\n`~` is the caller's home.\n\n";
    text += &table(["path", "reason"], paths.iter().map(rule));
    text
}

fn on(ground: Ground) -> &'static str {
    match ground {
        Ground::Nothing => "a path at which there was nothing",
        Ground::File => "a text file",
        Ground::Folder => "a folder with a text file in it",
    }
}

fn matrix(ground: Ground, outcome: fn(Ground, Deed, Deed) -> Option<Outcome>) -> String {
    let deeds: Vec<Deed> = Deed::ALL.into_iter().filter(|deed| deed.fits(ground)).collect();
    let head: Vec<String> =
        std::iter::once("sandbox \\ reality".to_owned()).chain(deeds.iter().map(word)).collect();
    let rows = deeds.iter().map(|sandbox| {
        let outcomes = deeds.iter().map(|reality| {
            let outcome = outcome(ground, *sandbox, *reality).expect("both fit the ground");
            let word = word(&outcome);
            if outcome == Outcome::Conflict { format!("**{word}**") } else { word }
        });
        std::iter::once(word(sandbox)).chain(outcomes).collect()
    });
    grid(&head, rows)
}

/// As it is called on the wire.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a word");
    value.as_str().expect("a word").to_owned()
}

/// The doc comments of an enum's variants, through its schema. Those without one speak for themselves.
fn meanings<T: JsonSchema>() -> Vec<[String; 2]> {
    let schema = schemars::schema_for!(T).to_value();
    let variants = schema["oneOf"].as_array().expect("an enum with doc comments is a oneOf");
    let said = variants.iter().filter_map(|variant| {
        Some([format!("`{}`", variant["const"].as_str()?), variant["description"].as_str()?.to_owned()])
    });
    said.collect()
}

fn rule(rule: &ExecutesRule) -> [String; 2] {
    [format!("`{}`", rule.path), rule.reason.clone()]
}

const ELSEWHERE: &str = "\
The same goes for all in the folder that `core.hooksPath` names, and for a file that git's settings include (`include.path`):
git is asked, for the real repositories around what is promoted, with the settings of the caller and of the machine. And for all
in a folder that git would take for a repository although it is not called `.git` (`HEAD`, `objects` and `refs` in it, or
`commondir`): whoever runs git there runs what its settings and hooks say.
";

const LIVE: &str = "
### The same on what is read live

The machine (named with `--paths`) and what git ignores are read live, and nobody keeps what they were: whether reality has
changed something since is told by its change time. So nothing is merged, and where reality deleted something, it looks as if it
had never been there: what the sandbox has comes back. (Overlayfs does note of a file that it was copied, but not from which path, nor
whether from the machine or from an earlier snapshot of the sandbox: a moved or snapshotted file would pass for one that is gone.)
";

const INTRODUCTION: &str = "\
`zeno promote` brings what a sandbox changed into the real workspace, all or nothing: as long as there is one conflict or one
refusal, nothing is changed. Where checks are declared, exactly the state that passed them goes through. Merged with what changed
in the workspace meanwhile, beside it, or only in part, it is judged before it is real; what changes while the checks run is
judged, too, and after three times it is refused. The winner of a race is judged by the checks of the race besides. `zeno try`
runs the checks itself. `--dry-run` says what they would say, and runs none of them.

What is judged is what is promoted. A sandbox that changed the machine, too, is judged without what is not named (`zeno verify`
judges it as it is, and its verdict says so and opens no gate for less). Only what git ignores is there for the checks as the sandbox
has it, because few would run without build folders: where it stays behind, a caveat says so. What git ignores may also change
here while the checks run.

The gate is that of where things go, not only of where the sandbox was made: what would be promoted into another worktree (named
with `--paths`, in a repository within the workspace, or because the workspace is only a folder of one) is refused where its
`zeno.yaml` asks for checks, or for a person before `local`. They are heard for a sandbox that is made there. `--force` goes past
that, and is recorded.

Times come along with what changed otherwise. A time alone is no change, and is not promoted.

Commits made inside arrive as `refs/zeno/<sandbox>/heads/...`, `.../tags/...` and `.../HEAD` of the real repository: no ref of
yours, no index, no setting and no hook is touched, and nothing checks them out. A verdict's digest covers where branches
stand, and so the commits themselves; its checks ran on the files of the working tree. `--no-commits` leaves them.

Git's own folders, `.git` in whatever spelling, are never promoted as files: neither the workspace's, nor that of a repository in
it, nor that of one elsewhere on the machine, not even where they are named. They are left out, and it is said.

What is one file under several names in the sandbox is one in reality, too: names that come are built as one file, and become
further names of a real file where the sandbox left that as it was. Where that cannot be (the other name is not promoted, is
masked or git's own, or has changed here meanwhile) it comes as a file of its own, and a caveat says so. Which names are one file
is no change by itself, as times are none. Of a file that had several names before, writing under one of them in a sandbox
parts it from the others (overlayfs copies it), and so does promoting it.

What a sandbox reads live (the machine, and what git ignores) and has changed in reality since it was made is a conflict. For a
fork or a restored sandbox this counts from when the sandbox was made that its files come from.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_cell() {
        let page = page();
        for row in [
            "| create | taken | **conflict** | **conflict** |",
            "| edit | taken | merged | merged | **conflict** | merged | **conflict** | **conflict** |",
            // Read live.
            "| edit | taken | **conflict** | **conflict** | taken | **conflict** | **conflict** | **conflict** |",
            "| `edit` | Written in place: the two sides change different lines. |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        let pairs = Ground::ALL.iter().flat_map(|ground| {
            Deed::ALL.iter().flat_map(move |one| {
                Deed::ALL.iter().filter(move |other| outcome(*ground, *one, **other).is_some())
            })
        });
        let rows = page
            .lines()
            .skip_while(|line| !line.starts_with("### On"))
            .take_while(|line| *line != "The words:");
        let rows =
            rows.filter(|line| line.starts_with("| ") && !line.contains("---") && !line.contains("reality"));
        assert_eq!(
            rows.map(|row| row.matches(" | ").count()).sum::<usize>(),
            2 * pairs.count(),
            "captured and live"
        );
    }
}
