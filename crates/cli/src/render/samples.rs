//! Values for the tests of this folder.

use jiff::Timestamp;
use model::caveat::{Caveat, CaveatKind, ReadLive};
use model::diff::{Change, ChangeKind, Diff, Entry, Lines};
use model::exec::Outcome;
use model::files::FileKind;
use model::limits::Limits;
use model::net::Net;
use model::race::{Pick, Race};
use model::sandbox::{Actor, Backend, Freshness, Listener, Masked, MemoryUse, Overlap, Status};
use model::snapshot::SnapshotReason;
use model::units::{Cpus, Size};
use model::verdict::{CheckResult, CheckRun, Excluded, Judgement, Reason};
use model::{Digest, RaceId, Sandbox, SandboxId, Snapshot, SnapshotId, State, Verdict, VerdictId};

pub(crate) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox {
        id: SandboxId::from_bits(0x0123_4567_89ab_cdef),
        name: Some("web".parse().unwrap()),
        state: State::Active,
        reason: None,
        backend: Backend::Native,
        created: "2026-05-01T11:56:30Z".parse().unwrap(),
        changed: "2026-05-01T11:57:00Z".parse().unwrap(),
        expires: Some("2026-05-01T13:57:00Z".parse().unwrap()),
        workspace: Some("/home/ada/src/app".into()),
        cwd: "/home/ada/src/app/web".into(),
        net: Net::None,
        limits: Limits { cpus: Some(Cpus(1500)), memory: Some(Size(2 << 30)), ..Limits::default() },
        labels: [("ticket".to_owned(), "1234".to_owned())].into(),
        actor: Actor::Agt,
        consumer: Some("review bot".to_owned()),
        caveats: vec![
            Caveat::new(CaveatKind::Limit, "The disk limit is watched, so it can be overrun for a moment."),
            Caveat::at(CaveatKind::Live, "/home/ada/src/app/target", "This ignored folder is read live."),
        ],
        snapshot: None,
    }
}

pub(crate) fn nameless() -> Sandbox {
    Sandbox {
        id: SandboxId::from_bits(7),
        name: None,
        state: State::Failed,
        reason: Some("init died".to_owned()),
        created: "2026-04-28T12:00:00Z".parse().unwrap(),
        expires: None,
        workspace: None,
        net: Net::Host,
        limits: Limits::default(),
        labels: [].into(),
        actor: Actor::Adm,
        consumer: None,
        caveats: Vec::new(),
        ..sandbox()
    }
}

pub(crate) fn status() -> Status {
    let masked = |path: &str, reason: &str| Masked { path: path.into(), reason: reason.to_owned() };
    Status {
        sandbox: sandbox(),
        live: ReadLive::Rest,
        freshness: Some(Freshness {
            captured: "2026-05-01T11:56:30Z".parse().unwrap(),
            behind: vec!["src/main.rs".into(), "README.md".into()],
            behind_total: 12,
            overlap: Some(Overlap { paths: vec!["src/main.rs".into()], total: 1 }),
            gone: false,
        }),
        masked: vec![
            masked("/home/ada/.ssh", "private keys, known hosts and agents' configuration"),
            masked("/home/ada/src/app/.env", "secrets of the application"),
        ],
        processes: Some(4),
        written: Size(12_900_000),
        memory: Some(MemoryUse { used: Size(700 << 20), killed: 1 }),
        host_listeners: vec![
            Listener { address: "127.0.0.1".to_owned(), port: 5432 },
            Listener { address: "::".to_owned(), port: 3000 },
        ],
    }
}

pub(crate) fn snapshots() -> Vec<Snapshot> {
    let snapshot = |bits, name: Option<&str>, parent: Option<u64>| Snapshot {
        id: SnapshotId::from_bits(bits),
        name: name.map(|name| name.parse().unwrap()),
        sandbox: sandbox().id,
        sandbox_name: sandbox().name,
        parent: parent.map(SnapshotId::from_bits),
        reason: SnapshotReason::Asked,
        created: "2026-05-01T11:56:30Z".parse().unwrap(),
        expires: None,
        size: Some(Size(5 << 20)),
        depth: 2,
        workspace: Some("/home/ada/src/app".into()),
        labels: [("ticket".to_owned(), "1234".to_owned())].into(),
        actor: Actor::Agt,
    };
    let fork = Snapshot {
        reason: SnapshotReason::Fork,
        expires: Some("2026-05-08T11:56:30Z".parse().unwrap()),
        size: None,
        sandbox_name: None,
        ..snapshot(3, None, Some(1))
    };
    vec![
        snapshot(1, Some("before"), None),
        snapshot(2, Some("after"), Some(1)),
        fork,
        snapshot(4, None, Some(2)),
    ]
}

pub(crate) fn diff() -> Diff {
    let entry = |kind, size, mode| Some(Entry { kind, size, mode, uid: 1000, gid: 1000, target: None });
    let file = |size| entry(FileKind::File, size, 0o644);
    let link =
        |target: &str| Some(Entry { target: Some(target.into()), ..entry(FileKind::Symlink, 3, 0o777)? });
    let change = |path: &str, kind, before, after| Change {
        path: path.into(),
        kind,
        before,
        after,
        contents: true,
        binary: false,
        xattrs: Vec::new(),
        ignored: false,
        lines: None,
        by: None,
    };
    let lines = |added, removed| Some(Lines { added, removed });
    let renamed = ChangeKind::Renamed { from: "lib".into() };
    let folder = || entry(FileKind::Directory, 0, 0o755);
    Diff {
        root: Some("/home/ada/src/app".into()),
        workspace: vec![
            Change { lines: lines(0, 80), ..change("old.rs", ChangeKind::Deleted, file(2100), None) },
            Change { lines: lines(3, 0), ..change("a\nb\x1b[2J", ChangeKind::Added, None, file(12)) },
            change("current", ChangeKind::Modified, link("v1"), link("v2")),
            change("docs", ChangeKind::TypeChanged, file(5), folder()),
            Change { contents: false, ..change("library", renamed, folder(), folder()) },
            Change { binary: true, ..change("logo.png", ChangeKind::Modified, file(900), file(1800)) },
            Change { ignored: true, ..change("target/debug/app", ChangeKind::Added, None, file(1 << 20)) },
            Change { ignored: true, ..change("target/debug/lib", ChangeKind::Added, None, file(1 << 20)) },
        ],
        machine: vec![Change {
            contents: false,
            xattrs: vec!["user.note".into()],
            after: Some(Entry { mode: 0o755, uid: 0, gid: 0, ..file(70).unwrap() }),
            ..change("/usr/local/bin/x", ChangeKind::Modified, file(70), None)
        }],
        git: vec!["/home/ada/src/app/.git".into()],
        unread: vec!["/home/ada/secret".into()],
    }
}

pub(crate) fn verdict() -> Verdict {
    let result = |name: &str, outcome, reason| CheckResult {
        name: name.parse().unwrap(),
        run: "make".to_owned(),
        definition: Digest([1; 32]),
        outcome,
        reason,
        runs: Vec::new(),
        tail: Vec::new(),
    };
    let run = |code, duration_ms| CheckRun {
        exit: Some(Outcome::Exited { code }),
        duration_ms,
        log: Some("/home/ada/.zeno/verdicts/x/unit.log".into()),
    };
    let needs = Reason::Needs { check: "unit".parse().unwrap() };
    Verdict {
        id: VerdictId::from_bits(0),
        outcome: Judgement::Fail,
        sandbox: sandbox().id,
        sandbox_name: sandbox().name,
        snapshot: SnapshotId::from_bits(0),
        digest: Digest([7; 32]),
        excluded: vec![Excluded::Times, Excluded::Unread { path: "/root/x".into() }],
        checks: vec![
            CheckResult { runs: vec![run(0, 1234)], ..result("build", Judgement::Pass, None) },
            CheckResult {
                runs: vec![run(1, 320), run(1, 320)],
                tail: vec!["test \x1b[31madds ... FAILED".to_owned()],
                ..result("unit", Judgement::Fail, Some(Reason::Exit { expected: vec![0] }))
            },
            result("lint", Judgement::Inconclusive, Some(needs)),
        ],
        caveats: vec![Caveat::new(CaveatKind::Checks, "the sandbox changed zeno.yaml")],
        actor: Actor::Adm,
        created: "2026-05-01T11:56:30Z".parse().unwrap(),
        duration_ms: 125_000,
    }
}

pub(crate) fn race() -> Race {
    let entry = |name: &str, outcome, added, lost: Option<&str>| model::race::Entry {
        name: name.parse().unwrap(),
        outcome,
        lost: lost.map(str::to_owned),
        sandbox: Some(SandboxId::from_bits(0)),
        exit: Some(Outcome::Exited { code: 0 }),
        verdict: Some(VerdictId::from_bits(0)),
        checks_passed: u64::from(outcome == Judgement::Pass),
        duration_ms: 640,
        files: Some(1),
        lines: Some(Lines { added, removed: u64::from(added < 10) }),
        score: None,
        peak_memory: Some(Size(5 << 20)),
        log: Some(format!("/home/ada/.zeno/races/x/{name}.log").as_str().into()),
        tail: Vec::new(),
    };
    let words = ["one", "two", "three", "four", "five", "x"].map(str::to_owned).to_vec();
    let larger = "it passes, but is no smaller than `small` (+2 -1 lines)";
    Race {
        id: RaceId::from_bits(0),
        pick: Pick::Smallest,
        winner: Some("small".parse().unwrap()),
        winner_sandbox: Some(SandboxId::from_bits(0)),
        snapshot: None,
        workspace: None,
        checks: vec!["unit".parse().unwrap()],
        entries: vec![
            entry("small", Judgement::Pass, 2, None),
            model::race::Entry {
                tail: words,
                ..entry("broken", Judgement::Fail, 2, Some("`unit` failed (x)"))
            },
            entry("large", Judgement::Pass, 40, Some(larger)),
        ],
        actor: Actor::Adm,
        created: "2026-05-01T11:56:30Z".parse().unwrap(),
        duration_ms: 2000,
    }
}
