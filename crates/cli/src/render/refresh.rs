//! `zeno refresh`.

use jiff::Timestamp;
use model::promotion::{Action, Assessment};
use model::refresh::Refreshed;

use super::paint::Paint;
use super::promotion::{obstacles, shown};
use super::words::{age, count};
use crate::args::which::Which;

pub(crate) fn refreshed(refreshed: &Refreshed, sandbox: &Which, now: Timestamp, paint: Paint) -> String {
    match refreshed {
        Refreshed::Done { before, assessment, .. } => {
            mixed(assessment, paint)
                + &format!(
                    "{sandbox} is up to date: {}  (back to before: zeno rollback {sandbox} {before})\n",
                    summary(assessment)
                )
        }
        Refreshed::Current { captured } => {
            format!(
                "{sandbox} is up to date: nothing changed here in the {} since it was frozen\n",
                age(*captured, now)
            )
        }
        Refreshed::Planned { assessment } => {
            let what = mixed(assessment, paint) + &obstacles(assessment, sandbox, paint);
            if assessment.is_clear() {
                format!(
                    "{what}nothing was changed: `zeno refresh` would carry over {}\n",
                    summary(assessment)
                )
            } else {
                what
            }
        }
        Refreshed::Blocked { assessment } => {
            obstacles(assessment, sandbox, paint) + "the sandbox is as it was\n"
        }
    }
}

/// What is not simply as the sandbox had it.
fn mixed(assessment: &Assessment, paint: Paint) -> String {
    let lines = assessment.actions.iter().filter_map(|planned| {
        let word = match planned.action {
            Action::Merge => paint.yellow("merged with changes made here"),
            Action::Keep => paint.yellow("taken from here"),
            Action::Same => paint.dim("the same here already"),
            Action::Delete | Action::Create | Action::Modify => return None,
        };
        Some(format!("  {}  {word}\n", shown(&planned.path)))
    });
    lines.collect()
}

fn summary(assessment: &Assessment) -> String {
    let counts = assessment.counts();
    let carried = counts.created + counts.modified + counts.deleted + counts.merged;
    let mut parts = vec![count(carried, "change of its own", "changes of its own")];
    if counts.merged > 0 {
        parts.push(format!("{} merged", counts.merged));
    }
    if counts.kept > 0 {
        parts.push(format!("{} given up", counts.kept));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use model::promotion::Planned;

    use super::*;
    use crate::render::samples;

    fn assessment(actions: &[(&str, Action)]) -> Assessment {
        let actions =
            actions.iter().map(|(path, action)| Planned { path: (*path).into(), action: *action }).collect();
        Assessment { actions, ..Assessment::default() }
    }

    #[test]
    fn what_was_mixed_is_named() {
        let web: Which = "web".parse().unwrap();
        let done = Refreshed::Done {
            sandbox: Box::new(samples::sandbox()),
            before: model::SnapshotId::from_bits(7),
            assessment: assessment(&[
                ("src/a.rs", Action::Create),
                ("src/b.rs", Action::Merge),
                ("src/c.rs", Action::Keep),
                ("src/d.rs", Action::Same),
            ]),
        };
        insta::assert_snapshot!(refreshed(&done, &web, samples::now(), Paint::Plain), @"
          src/b.rs  merged with changes made here
          src/c.rs  taken from here
          src/d.rs  the same here already
        web is up to date: 2 changes of its own, 1 merged, 1 given up  (back to before: zeno rollback web snhaaaaaaaaaaa)
        ");
        let current = Refreshed::Current { captured: "2026-05-01T11:56:30Z".parse().unwrap() };
        insta::assert_snapshot!(refreshed(&current, &web, samples::now(), Paint::Plain), @"web is up to date: nothing changed here in the 3m since it was frozen");
    }
}
