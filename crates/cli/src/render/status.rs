//! `zeno status`: the record, and how the sandbox stands to reality.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use model::Sandbox;
use model::caveat::{CaveatKind, ReadLive};
use model::sandbox::{Freshness, Listener, MemoryUse, Status};

use super::paint::Paint;
use super::sandbox::{fields, headline, record};
use super::words::{age, clean, count, name, path};

pub(crate) fn status(status: &Status, home: Option<&Path>, now: Timestamp, paint: Paint) -> String {
    let mut told = record(&status.sandbox, home, now);
    match &status.freshness {
        Some(freshness) => {
            told.push(("frozen", format!("{}; {}", frozen(freshness, now), status.live.text())));
        }
        None if status.live == ReadLive::All && status.sandbox.state.is_running() => {
            told.push(("frozen", format!("nothing; {}", status.live.text())));
        }
        None => {}
    }
    if let Some(processes) = status.processes {
        told.push(("processes", processes.to_string()));
    }
    if let Some(memory) = &status.memory {
        told.push(("memory", memory_use(memory)));
    }
    told.push(("wrote", status.written.rough()));
    let mut text = headline(&status.sandbox, paint) + &fields(&told, paint);
    text += &behind(&status.sandbox, status.freshness.as_ref(), paint);
    text += &hidden(status, home, paint);
    text += &listeners(&status.host_listeners, paint);
    text += &caveats(status, home, paint);
    text
}

fn frozen(freshness: &Freshness, now: Timestamp) -> String {
    let ago = age(freshness.captured, now);
    match freshness.behind_total {
        _ if freshness.gone => format!("{ago} ago, the real folder is gone"),
        0 => format!("{ago} ago, nothing moved on since"),
        total => {
            let overlap = match freshness.overlap.as_ref().map(|overlap| overlap.total) {
                // Those that it changed are listed.
                None | Some(1..) => "",
                Some(0) => ", untouched in the sandbox",
            };
            format!("{ago} ago, {} moved on since{overlap}", count(total, "path", "paths"))
        }
    }
}

fn memory_use(memory: &MemoryUse) -> String {
    let used = memory.used.rough();
    match memory.killed {
        0 => format!("{used} in use"),
        killed => format!("{used} in use, {} killed for want of more", count(killed, "process", "processes")),
    }
}

fn behind(sandbox: &Sandbox, freshness: Option<&Freshness>, paint: Paint) -> String {
    let Some(freshness) = freshness.filter(|freshness| !freshness.behind.is_empty()) else {
        return String::new();
    };
    let lines: Vec<String> = freshness.behind.iter().map(|text| path(text, None)).collect();
    let lines = first(lines, freshness.behind_total, sandbox);
    let title = format!("moved on since it was frozen (bring it up to date: zeno refresh {})", name(sandbox));
    let mut text = section(&title, &lines, paint);
    let overlap = freshness.overlap.as_ref().filter(|overlap| overlap.total > 0);
    if let Some(overlap) = overlap {
        let lines: Vec<String> = overlap.paths.iter().map(|text| path(text, None)).collect();
        let lines = first(lines, overlap.total, sandbox);
        text += &section("of these the sandbox has changed, too", &lines, paint);
    }
    text
}

fn hidden(status: &Status, home: Option<&Path>, paint: Paint) -> String {
    let shown: Vec<(String, &str)> =
        status.masked.iter().map(|masked| (path(&masked.path, home), masked.reason.as_str())).collect();
    let width = shown.iter().map(|(path, _)| path.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        shown.iter().map(|(path, reason)| format!("{path:width$}  {}", paint.dim(&clean(reason)))).collect();
    let total = lines.len() as u64;
    let title = format!("hidden: {}", count(total, "path", "paths"));
    section(&title, &first(lines, total, &status.sandbox), paint)
}

fn listeners(listeners: &[Listener], paint: Paint) -> String {
    let lines: Vec<String> = listeners
        .iter()
        .map(|listener| {
            let address = clean(&listener.address);
            // An IPv6 address has colons of its own.
            let address = if address.contains(':') { format!("[{address}]") } else { address.into_owned() };
            format!("{address}:{}", listener.port)
        })
        .collect();
    section("listening on this machine, not in the sandbox", &lines, paint)
}

fn caveats(status: &Status, home: Option<&Path>, paint: Paint) -> String {
    // Many of one kind do not push another out of sight.
    let mut told = BTreeMap::new();
    let shown = status.sandbox.caveats.iter().filter(|caveat| {
        let told: &mut usize = told.entry(caveat.kind).or_default();
        *told += 1;
        *told <= SHOWN
    });
    let mut lines: Vec<String> = shown
        .map(|caveat| {
            let place = caveat
                .path
                .as_ref()
                .map(|at| format!(" ({})", path(&at.as_str().into(), home)))
                .unwrap_or_default();
            format!("{}  {}{place}", paint.yellow(&format!("{:10}", kind(caveat.kind))), clean(&caveat.text))
        })
        .collect();
    let total = status.sandbox.caveats.len();
    if total > lines.len() {
        lines.push(more(total as u64, total, lines.len(), &status.sandbox));
    }
    section("caveats", &lines, paint)
}

/// As many lines as a person reads, then how many more there are of `total`, and how to see them.
fn first(mut lines: Vec<String>, total: u64, sandbox: &Sandbox) -> Vec<String> {
    let known = lines.len();
    lines.truncate(SHOWN);
    if total > lines.len() as u64 {
        lines.push(more(total, known, lines.len(), sandbox));
    }
    lines
}

/// Of `total` things `known` are told to programs, and `shown` to people.
fn more(total: u64, known: usize, shown: usize, sandbox: &Sandbox) -> String {
    let unseen = total.saturating_sub(shown as u64);
    let all = format!("zeno status {} --json", name(sandbox));
    match known {
        known if known as u64 >= total => format!("and {unseen} more, listed by {all}"),
        known if known > shown => format!("and {unseen} more; the first {known} are listed by {all}"),
        _ => format!("and {unseen} more"),
    }
}

fn section(title: &str, lines: &[String], paint: Paint) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let body: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{body}", paint.bold(title))
}

fn kind(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::Capture => "capture",
        CaveatKind::Live => "live",
        CaveatKind::View => "view",
        CaveatKind::Limit => "limit",
        CaveatKind::Network => "network",
        CaveatKind::Privilege => "privilege",
        CaveatKind::Processes => "processes",
        CaveatKind::Checks => "checks",
        CaveatKind::Verdict => "verdict",
        CaveatKind::Commits => "commits",
        CaveatKind::Durability => "durability",
    }
}

/// How many lines of one kind are shown.
const SHOWN: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_busy_sandbox() {
        let home = Some(Path::new("/home/ada"));
        insta::assert_snapshot!(status(&samples::status(), home, samples::now(), Paint::Plain), @"
        web  active  sbpptx2e6mf2ic
          age        3m, expires in 1h57m
          workspace  ~/src/app
          folder     ~/src/app/web
          network    none
          limits     cpus 1.5, memory 2GiB
          labels     ticket=1234
          asked by   an agent for review bot
          frozen     3m ago, 12 paths moved on since; the rest of the machine is read live
          processes  4
          memory     700.0 MiB in use, 1 process killed for want of more
          wrote      12.3 MiB

        moved on since it was frozen (bring it up to date: zeno refresh web)
          src/main.rs
          README.md
          and 10 more

        of these the sandbox has changed, too
          src/main.rs

        hidden: 2 paths
          ~/.ssh          private keys, known hosts and agents' configuration
          ~/src/app/.env  secrets of the application

        listening on this machine, not in the sandbox
          127.0.0.1:5432
          [::]:3000

        caveats
          limit       The disk limit is watched, so it can be overrun for a moment.
          live        This ignored folder is read live. (~/src/app/target)
        ");
    }

    #[test]
    fn a_failed_one_with_nothing_to_say() {
        let quiet = Status {
            sandbox: samples::nameless(),
            freshness: None,
            live: ReadLive::All,
            masked: Vec::new(),
            processes: None,
            memory: None,
            host_listeners: Vec::new(),
            ..samples::status()
        };
        insta::assert_snapshot!(status(&quiet, None, samples::now(), Paint::Plain), @"
        sbhaaaaaaaaaaa  failed  init died
          age        3d
          folder     /home/ada/src/app/web
          network    host
          asked by   a person
          wrote      12.3 MiB
        ");
    }

    #[test]
    fn what_is_too_much_to_read_is_counted_and_says_how_to_see_it() {
        let tail = |known: usize, total: u64| {
            let lines = (0..known).map(|line| line.to_string()).collect();
            let shown = first(lines, total, &samples::sandbox());
            (shown.len(), shown.last().cloned().unwrap_or_default())
        };
        assert_eq!(tail(50, 50), (50, "49".to_owned()));
        assert_eq!(tail(60, 60), (51, "and 10 more, listed by zeno status web --json".to_owned()));
        let most = "and 11950 more; the first 10000 are listed by zeno status web --json";
        assert_eq!(tail(10_000, 12_000), (51, most.to_owned()));
    }

    #[test]
    fn one_without_a_workspace_says_that_all_is_live() {
        let bare = Status {
            sandbox: Sandbox { workspace: None, ..samples::sandbox() },
            freshness: None,
            live: ReadLive::All,
            ..samples::status()
        };
        let shown = status(&bare, None, samples::now(), Paint::Plain);
        assert!(shown.contains("\n  frozen     nothing; the whole machine is read live\n"), "{shown}");
    }

    #[test]
    fn colour_only_repeats_what_the_words_say() {
        let plain = status(&samples::status(), None, samples::now(), Paint::Plain);
        let coloured = status(&samples::status(), None, samples::now(), Paint::Colour);
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped += before;
            rest = after.split_once('m').expect("every colour ends with m").1;
        }
        assert_eq!(stripped + rest, plain);
        assert_ne!(coloured, plain);
    }
}
