//! What a promotion does, path by path, and what stands in its way.

use jiff::Timestamp;
use model::Name;
use model::exec::Text;
use model::promotion::{
    Action, Assessment, CommitRef, Counts, Foretold, LeftOut, OnConflict, Promoted, Promotion,
    PromotionState, Resolutions,
};

use super::conflict::conflicts;
use super::paint::Paint;
use super::sandbox::who;
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
                (true, true) => what + "nothing to promote (times alone are no change)\n",
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
pub(super) fn row(promotion: &Promotion, now: Timestamp) -> [String; 6] {
    [
        promotion.id.to_string(),
        state(promotion).to_owned(),
        age(promotion.when, now),
        who(promotion.actor).to_owned(),
        promotion.sandbox.to_string(),
        summary(promotion.counts, &promotion.commits) + &insisted(promotion),
    ]
}

/// What the actor said that lets more through than by itself.
fn insisted(promotion: &Promotion) -> String {
    let whose = |whose: OnConflict| match whose {
        OnConflict::Ours => "ours",
        OnConflict::Theirs => "theirs",
        OnConflict::Abort => "abort",
    };
    let Resolutions { otherwise, paths } = &promotion.resolutions;
    let everywhere = (*otherwise != OnConflict::default()).then(|| whose(*otherwise).to_owned());
    let decided = paths.iter().map(|(path, decision)| format!("{}={}", clean(path), whose(*decision)));
    let decided: Vec<_> = everywhere.into_iter().chain(decided).collect();
    let mut told = Vec::new();
    if promotion.forced {
        told.push("--force".to_owned());
    }
    if promotion.allowed_executes {
        told.push("--allow-executes".to_owned());
    }
    told.extend(decided.iter().map(|decision| format!("--on-conflict {decision}")));
    if told.is_empty() { String::new() } else { format!(", with {}", told.join(" ")) }
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
        let what = match brought.commits {
            // Git makes two or three of one.
            _ if brought.is_stash() => String::new(),
            0 if brought.inside.starts_with("refs/tags/") => "tag ".to_owned(),
            0 => "on ".to_owned(),
            number if brought.inside.starts_with("refs/tags/") => {
                format!("{} tag ", count(number, "commit", "commits"))
            }
            number => format!("{} on ", count(number, "commit", "commits")),
        };
        let repository = brought.repository.as_ref().map(|path| format!(" in {}", shown(path)));
        format!(
            "  {what}{} -> {}{}\n",
            clean(brought.short()),
            clean(&brought.outside),
            repository.unwrap_or_default()
        )
    });
    lines.collect()
}

fn seen(commits: &[CommitRef]) -> String {
    let git = |brought: &CommitRef| match &brought.repository {
        Some(repository) => format!("git --git-dir={}", shown(repository)),
        None => "git".to_owned(),
    };
    let committed = commits
        .iter()
        .find(|brought| !brought.is_stash())
        .map(|brought| format!("see what was committed: {} log {}\n", git(brought), clean(&brought.outside)));
    let stashed = commits.iter().find(|brought| brought.is_stash()).map(|brought| {
        format!("see what was stashed: {} stash show -p {}\n", git(brought), clean(&brought.outside))
    });
    committed.into_iter().chain(stashed).collect()
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
    let mut text = conflicts(assessment, sandbox, paint);
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
