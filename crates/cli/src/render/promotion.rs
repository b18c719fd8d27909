//! What a promotion does, path by path, and what stands in its way.

use jiff::Timestamp;
use model::Name;
use model::exec::Text;
use model::promotion::{
    Action, Assessment, CommitRef, Conflict, Counts, Did, Foretold, LeftOut, Promoted, Promotion,
    PromotionState, Side,
};

use super::paint::Paint;
use super::words::{age, clean, count};
use crate::args::which::Which;

pub(crate) fn promoted(promoted: &Promoted, sandbox: &Which, paint: Paint) -> String {
    match promoted {
        Promoted::Done { promotion, assessment } => {
            let id = promotion.id;
            actions(assessment, paint)
                + &commits(&assessment.commits)
                + &seen(&assessment.commits)
                + &left_out(assessment)
                + &format!(
                    "{} as {id}  (take it back: zeno undo {id})\n",
                    summary(promotion.counts, &promotion.commits)
                )
        }
        Promoted::Already { promotion } => {
            format!("promoted before as {}  (take it back: zeno undo {})\n", promotion.id, promotion.id)
        }
        Promoted::Planned { assessment, gate } => {
            let what = actions(assessment, paint)
                + &commits(&assessment.commits)
                + &in_the_way(assessment, sandbox, paint)
                + &left_out(assessment);
            match (assessment.is_nothing(), assessment.is_clear()) {
                (true, true) => what + "nothing to promote\n",
                (false, true) => what + &foretold(gate.as_ref()),
                (_, false) => what,
            }
        }
        Promoted::Blocked { assessment } => {
            in_the_way(assessment, sandbox, paint) + &left_out(assessment) + "nothing was changed\n"
        }
    }
}

/// What would become of it at the gate.
fn foretold(gate: Option<&Foretold>) -> String {
    let this = "nothing was changed: this is what `zeno promote` would do";
    let listed = |checks: &[Name]| checks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match gate {
        None => format!("{this}\n"),
        Some(Foretold::Open { verdict }) => format!("{this}; its checks have passed ({verdict})\n"),
        Some(Foretold::Checks { checks }) => {
            format!("{this}, if it passes these checks first: {}\n", listed(checks))
        }
        Some(Foretold::Forced { checks }) => {
            format!("{this}, whatever these checks say: {}\n", listed(checks))
        }
        Some(Foretold::Closed { problem }) => {
            let hints = problem.hints.iter().map(|hint| format!("  try: {}\n", clean(hint)));
            let why = clean(&problem.detail);
            format!("nothing was changed, and `zeno promote` would refuse: {why}\n")
                + &hints.collect::<String>()
        }
    }
}

/// A row for a list.
pub(super) fn row(promotion: &Promotion, now: Timestamp) -> [String; 5] {
    [
        promotion.id.to_string(),
        state(promotion).to_owned(),
        age(promotion.when, now),
        promotion.sandbox.to_string(),
        summary(promotion.counts, &promotion.commits),
    ]
}

/// What is done to each path, deletions first. What stays as it is is only counted.
fn actions(assessment: &Assessment, paint: Paint) -> String {
    let shown = assessment.actions.iter().filter_map(|planned| {
        let word = match planned.action {
            Action::Delete => paint.red("delete"),
            Action::Create => paint.green("create"),
            Action::Modify => paint.yellow("modify"),
            Action::Merge => paint.yellow("merge "),
            Action::Keep => "keep  ".to_owned(),
            Action::Same => return None,
        };
        Some(format!("  {word}  {}\n", shown(&planned.path)))
    });
    shown.collect()
}

/// Where commits made inside are to be found.
fn commits(commits: &[CommitRef]) -> String {
    let lines = commits.iter().map(|brought| {
        let what = if brought.inside.starts_with("refs/tags/") { "tag" } else { "on" };
        let number = match brought.commits {
            0 => String::new(),
            number => count(number, "commit", "commits") + " ",
        };
        format!("  {number}{what} {} -> {}\n", clean(brought.short()), clean(&brought.outside))
    });
    lines.collect()
}

fn seen(commits: &[CommitRef]) -> String {
    let line = |first: &CommitRef| format!("see what was committed: git log {}\n", clean(&first.outside));
    commits.first().map(line).unwrap_or_default()
}

fn in_the_way(assessment: &Assessment, sandbox: &Which, paint: Paint) -> String {
    let mut text = obstacles(assessment, sandbox, paint);
    if !assessment.refused.is_empty() {
        text += "  try: promote the rest: name it with --paths\n";
    }
    if !assessment.executes.is_empty() {
        text += "  try: look at them, then promote with --allow-executes\n";
    }
    text
}

pub(super) fn obstacles(assessment: &Assessment, sandbox: &Which, paint: Paint) -> String {
    let mut text = String::new();
    for conflict in &assessment.conflicts {
        text += &format!("{} {}\n", paint.red("conflict"), shown(&conflict.path));
        text += &sides(conflict);
    }
    for refusal in &assessment.refused {
        text +=
            &format!("{}  {}: {}\n", paint.red("refused"), shown(&refusal.path), refusal.reason.sentence());
        text += &format!("  try: {}\n", refusal.reason.remedy());
    }
    for executes in &assessment.executes {
        text += &format!("{} {}: {}\n", paint.red("executes"), shown(&executes.path), executes.why);
    }
    if !assessment.conflicts.is_empty() {
        text += &format!("  try: see both sides: zeno diff {sandbox} --patch; git diff\n");
        text += "  try: say who wins: --on-conflict ours|theirs, or for one path --on-conflict PATH=ours\n";
    }
    text
}

fn sides(conflict: &Conflict) -> String {
    let side = |side: &Side| did(side.did);
    format!(
        "  {}\n  the sandbox {}, reality {}\n",
        conflict.reason.sentence(),
        side(&conflict.ours),
        side(&conflict.theirs)
    )
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

fn left_out(assessment: &Assessment) -> String {
    let LeftOut { ignored, machine, unnamed, masked, git } = &assessment.left_out;
    let mut parts = Vec::new();
    let mut add = |number: u64, what: &str| {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    };
    add(*ignored, "ignored by git");
    add(*machine, "outside the workspace");
    add(*unnamed, "not named");
    add(masked.len() as u64, "masked");
    add(git.len() as u64, "of git's own");
    let caveats: String =
        assessment.caveats.iter().map(|caveat| format!("caveat: {}\n", clean(&caveat.text))).collect();
    // What is masked, and git's own, naming does not bring.
    let hint = if ignored + machine + unnamed > 0 { " (name what you want with --paths)" } else { "" };
    match parts.as_slice() {
        [] => caveats,
        _ => caveats + &format!("left out: {}{hint}\n", parts.join(", ")),
    }
}

pub(super) fn summary(counts: Counts, commits: &[CommitRef]) -> String {
    let Counts { deleted, created, modified, merged, kept: _, same: _ } = counts;
    let mut parts: Vec<String> =
        [(created, "created"), (modified, "modified"), (merged, "merged"), (deleted, "deleted")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(number, "path", "paths")))
            .collect();
    if !commits.is_empty() {
        parts.push(count(commits.len() as u64, "ref", "refs"));
    }
    if parts.is_empty() { "nothing to promote".to_owned() } else { parts.join(", ") }
}

fn state(promotion: &Promotion) -> &'static str {
    match promotion.state {
        PromotionState::Applied if promotion.forgotten => "for good",
        PromotionState::Applying => "applying",
        PromotionState::Applied => "applied",
        PromotionState::Failed => "failed",
        PromotionState::Undone => "undone",
    }
}

pub(super) fn shown(path: &Text) -> String {
    clean(&path.display()).into_owned()
}
