//! `zeno snapshots` and `zeno gc`.

use jiff::Timestamp;
use model::snapshot::{Garbage, GarbageKind, Snapshot};

use super::paint::Paint;
use super::sandbox::fields;
use super::table::table;
use super::words::{age, clean, count, left};

/// What people call it.
pub(crate) fn name(snapshot: &Snapshot) -> String {
    snapshot.name.as_ref().map_or_else(|| snapshot.id.to_string(), ToString::to_string)
}

pub(crate) fn list(snapshots: &[Snapshot], now: Timestamp, paint: Paint) -> String {
    let rows: Vec<[String; 6]> =
        snapshots.iter().map(|snapshot| row(snapshot, name(snapshot), now)).collect();
    table(HEADER, &rows, paint)
}

/// The same, each below the one it was made on. One whose parent is not among them is a root.
pub(crate) fn tree(snapshots: &[Snapshot], now: Timestamp, paint: Paint) -> String {
    let mut rows = Vec::new();
    let is_root = |snapshot: &&Snapshot| {
        snapshot.parent.is_none_or(|parent| snapshots.iter().all(|other| other.id != parent))
    };
    let mut pending: Vec<(&Snapshot, usize)> =
        snapshots.iter().filter(is_root).rev().map(|root| (root, 0)).collect();
    while let Some((snapshot, depth)) = pending.pop() {
        rows.push(row(snapshot, "  ".repeat(depth) + &name(snapshot), now));
        let children = snapshots.iter().rev().filter(|child| child.parent == Some(snapshot.id));
        pending.extend(children.map(|child| (child, depth + 1)));
    }
    table(HEADER, &rows, paint)
}

/// Ids only, one per line, for `$(zeno snapshots -q)`.
pub(crate) fn ids(snapshots: &[Snapshot]) -> String {
    snapshots.iter().map(|snapshot| format!("{}\n", snapshot.id)).collect()
}

pub(crate) fn record(snapshot: &Snapshot, now: Timestamp, paint: Paint) -> String {
    let mut lines = vec![("id", snapshot.id.to_string()), ("age", age(snapshot.created, now))];
    if let Some(expires) = snapshot.expires {
        lines.push(("expires", format!("in {}", left(expires, now))));
    }
    lines.push(("sandbox", of(snapshot)));
    lines.extend(snapshot.parent.map(|parent| ("made on", parent.to_string())));
    lines.push(("reason", snapshot.reason.to_string()));
    lines.push(("size", size(snapshot)));
    lines.push(("layers", snapshot.depth.to_string()));
    lines.extend(snapshot.workspace.as_ref().map(|path| ("workspace", clean(&path.display()).into_owned())));
    let labels: Vec<String> =
        snapshot.labels.iter().map(|(key, value)| clean(&format!("{key}={value}")).into_owned()).collect();
    if !labels.is_empty() {
        lines.push(("labels", labels.join(", ")));
    }
    paint.bold(&name(snapshot)) + "\n" + &fields(&lines, paint)
}

pub(crate) fn garbage(garbage: &Garbage) -> String {
    let mut text = String::new();
    for item in &garbage.items {
        let kind = match item.kind {
            GarbageKind::Layer => "layer",
            GarbageKind::Capture => "capture",
            GarbageKind::Leftover => "leftover",
            GarbageKind::Promotion => "promotion",
        };
        text += &format!("{kind:8}  {}  {}\n", clean(&item.name), item.size.rough());
    }
    let done = if garbage.dry_run { "would be removed" } else { "removed" };
    let things = count(garbage.items.len() as u64, "thing", "things");
    text + &format!("{things} {done}, {}\n", garbage.size.rough())
}

fn row(snapshot: &Snapshot, name: String, now: Timestamp) -> [String; 6] {
    let age = age(snapshot.created, now);
    let kept = snapshot.expires.map_or_else(|| "-".to_owned(), |expires| left(expires, now));
    [name, of(snapshot), snapshot.reason.to_string(), age, kept, size(snapshot)]
}

fn of(snapshot: &Snapshot) -> String {
    snapshot.sandbox_name.as_ref().map_or_else(|| snapshot.sandbox.to_string(), ToString::to_string)
}

fn size(snapshot: &Snapshot) -> String {
    snapshot.size.map_or_else(|| "-".to_owned(), model::units::Size::rough)
}

const HEADER: [&str; 6] = ["NAME", "SANDBOX", "REASON", "AGE", "EXPIRES", "SIZE"];

#[cfg(test)]
mod tests {
    use model::snapshot::GarbageItem;
    use model::units::Size;

    use super::*;
    use crate::render::samples;

    #[test]
    fn a_list_a_tree_and_one() {
        let snapshots = samples::snapshots();
        insta::assert_snapshot!(list(&snapshots, samples::now(), Paint::Plain), @"
        NAME            SANDBOX         REASON  AGE  EXPIRES  SIZE
        before          web             asked   3m   -        5.0 MiB
        after           web             asked   3m   -        5.0 MiB
        sndaaaaaaaaaaa  sbpptx2e6mf2ic  fork    3m   7d       -
        sneaaaaaaaaaaa  web             asked   3m   -        5.0 MiB
        ");
        insta::assert_snapshot!(tree(&snapshots, samples::now(), Paint::Plain), @"
        NAME                SANDBOX         REASON  AGE  EXPIRES  SIZE
        before              web             asked   3m   -        5.0 MiB
          after             web             asked   3m   -        5.0 MiB
            sneaaaaaaaaaaa  web             asked   3m   -        5.0 MiB
          sndaaaaaaaaaaa    sbpptx2e6mf2ic  fork    3m   7d       -
        ");
        // What its parent is may not be asked for, or be gone.
        insta::assert_snapshot!(tree(&snapshots[1..2], samples::now(), Paint::Plain), @"
        NAME   SANDBOX  REASON  AGE  EXPIRES  SIZE
        after  web      asked   3m   -        5.0 MiB
        ");
        insta::assert_snapshot!(record(&snapshots[1], samples::now(), Paint::Plain), @"
        after
          id         sncaaaaaaaaaaa
          age        3m
          sandbox    web
          made on    snbaaaaaaaaaaa
          reason     asked
          size       5.0 MiB
          layers     2
          workspace  /home/ada/src/app
          labels     ticket=1234
        ");
    }

    #[test]
    fn what_is_removed_and_what_would_be() {
        let item =
            GarbageItem { kind: GarbageKind::Layer, name: "lyaaaaaaaaaaaa".to_owned(), size: Size(2048) };
        let found = Garbage { dry_run: true, items: vec![item], size: Size(2048) };
        insta::assert_snapshot!(garbage(&found), @"
        layer     lyaaaaaaaaaaaa  2.0 KiB
        1 thing would be removed, 2.0 KiB
        ");
        insta::assert_snapshot!(garbage(&Garbage::default()), @"0 things removed, 0 B");
    }
}
