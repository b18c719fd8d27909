//! `zeno events`: one line per event.

use std::fmt::Display;

use model::Name;
use model::event::{
    Event, EventData, PromotionChange, PromotionChangeKind, RaceEnded, SnapshotChange, SnapshotChangeKind,
    Transition, VerdictGiven,
};

use super::paint::Paint;
use super::words::{clean, count};

pub(crate) fn event(event: &Event, paint: Paint) -> String {
    let (name, told) = match &event.data {
        EventData::Transition(transition) => {
            (called(transition.name.as_ref(), &transition.sandbox), moved(transition))
        }
        EventData::Snapshot(change) => {
            let snapshot = called(change.name.as_ref(), &change.snapshot);
            (called(change.sandbox_name.as_ref(), &change.sandbox), said(change, &snapshot))
        }
        EventData::Promotion(change) => (change.sandbox.to_string(), promoted(change)),
        EventData::Verdict(given) => (called(given.sandbox_name.as_ref(), &given.sandbox), judged(given)),
        EventData::Race(ended) => (ended.race.to_string(), raced(ended)),
    };
    let number = paint.dim(&format!("{:>5}", event.sequence));
    let time = paint.dim(&event.time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    format!("{number}  {time}  {name:14}  {told}\n")
}

fn called(name: Option<&Name>, id: &dyn Display) -> String {
    name.map_or_else(|| id.to_string(), ToString::to_string)
}

fn moved(transition: &Transition) -> String {
    let change = match transition.from {
        Some(from) => format!("{from} -> {}", transition.to),
        None => transition.to.to_string(),
    };
    let reason = transition.reason.as_ref().map(|reason| format!("  {}", clean(reason))).unwrap_or_default();
    change + &reason
}

fn said(change: &SnapshotChange, snapshot: &str) -> String {
    match change.change {
        SnapshotChangeKind::Made => format!("snapshot {snapshot} made  {}", change.reason),
        SnapshotChangeKind::Removed => format!("snapshot {snapshot} removed"),
        SnapshotChangeKind::RolledBack => format!("rolled back to {snapshot}"),
    }
}

fn promoted(change: &PromotionChange) -> String {
    let forced = if change.forced { "  past its gate" } else { "" };
    match change.change {
        PromotionChangeKind::Promoted => format!("promoted as {}{forced}", change.promotion),
        PromotionChangeKind::Undone => format!("promotion {} undone", change.promotion),
    }
}

fn judged(given: &VerdictGiven) -> String {
    format!("verdict {}  {}", given.verdict, given.outcome)
}

fn raced(ended: &RaceEnded) -> String {
    let ran = count(ended.candidates, "candidate", "candidates");
    match &ended.winner {
        Some(winner) => format!("race of {ran} won by {winner}"),
        None => format!("race of {ran} without a winner"),
    }
}

#[cfg(test)]
mod tests {
    use model::State;
    use model::sandbox::Actor;

    use super::*;
    use crate::render::samples;

    #[test]
    fn a_first_and_a_later_event() {
        let transition = |from, to, reason: Option<&str>| Transition {
            sandbox: samples::sandbox().id,
            name: samples::sandbox().name,
            from,
            to,
            reason: reason.map(ToOwned::to_owned),
            actor: Actor::Adm,
            consumer: None,
        };
        let first = Event::of(1, samples::now(), transition(None, State::Requested, None));
        let last = Event::of(
            12,
            samples::now(),
            transition(Some(State::Active), State::Expired, Some("its time ran out")),
        );
        let shown = event(&first, Paint::Plain) + &event(&last, Paint::Plain);
        insta::assert_snapshot!(shown, @"
         1  2026-05-01T12:00:00Z  web             requested
        12  2026-05-01T12:00:00Z  web             active -> expired  its time ran out
        ");
    }
}
