use std::os::unix::fs::PermissionsExt;

use model::caveat::CaveatKind;
use model::exec::Variable;
use model::sandbox::Actor;
use model::{Caveat, Name, State};
use proptest::prelude::*;

use super::*;

fn new(bits: u64, name: Option<&str>) -> NewRecord {
    let mut request = CreateRequest { name: name.map(|name| name.parse().unwrap()), ..Default::default() };
    request.context.cwd = "/work".into();
    request.context.env.push(Variable { name: "TOKEN".into(), value: "secret".into() });
    NewRecord {
        id: SandboxId::from_bits(bits),
        request,
        expires: Some(now()),
        throwaway: false,
        snapshot: None,
    }
}

async fn destroy(store: &Store, id: SandboxId) {
    store.transition(id, Move::to(State::Destroying).then(State::Destroyed)).await.unwrap();
}

#[tokio::test]
async fn a_record_reads_back_and_shows_no_environment() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let order = new(1, Some("a"));
    let inserted = store.insert(order.clone()).await.unwrap();
    let record = store.record(order.id).await.unwrap().unwrap();
    let expected =
        Record { sandbox: inserted, used: false, throwaway: false, traceless: false, restarting: false };
    assert_eq!(record, expected);
    assert!(!serde_json::to_string(&record.sandbox).unwrap().contains("secret"));
    assert_eq!(store.request(order.id).await.unwrap().unwrap(), order.request);

    store.close().await;
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.record(order.id).await.unwrap().unwrap(), record);
}

#[tokio::test]
async fn no_secret_outlives_its_sandbox() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let order = new(1, None);
    store.insert(order.clone()).await.unwrap();
    destroy(&store, order.id).await;
    assert_eq!(store.request(order.id).await.unwrap(), None);
    assert_eq!(store.record(order.id).await.unwrap().unwrap().sandbox.state, State::Destroyed);
}

#[tokio::test]
async fn the_environment_of_a_throwaway_is_not_written_at_all() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let id = store.insert(NewRecord { throwaway: true, ..new(1, None) }).await.unwrap().id;
    assert!(store.record(id).await.unwrap().unwrap().throwaway);
    assert_eq!(store.request(id).await.unwrap(), None);
    store.close().await;
    let file = std::fs::read(home.path().join("zeno.db")).unwrap();
    assert!(!file.windows(6).any(|bytes| bytes == b"secret"));
}

#[tokio::test]
async fn what_it_learned_on_the_way_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let id = store.insert(new(1, None)).await.unwrap().id;
    let caveat = Caveat::new(CaveatKind::Live, "Home is read live.");
    let facts = Facts { workspace: Some("/w".into()), caveats: Some(vec![caveat.clone()]), expires: None };
    let moved = store.transition(id, Move::to(State::Ready).then(State::Active).with(facts)).await.unwrap();
    assert_eq!(
        moved.events.iter().map(|event| event.data.transition().unwrap().to).collect::<Vec<_>>(),
        [State::Ready, State::Active]
    );
    let record = store.record(id).await.unwrap().unwrap();
    assert_eq!((record.sandbox.workspace.clone(), record.used), (Some("/w".into()), true));
    assert_eq!(record.sandbox.caveats, [caveat]);
    let moved = store.transition(id, Move::to(State::Stopped).because("disk").by_zeno()).await.unwrap();
    assert_eq!(moved.sandbox.reason.as_deref(), Some("disk"));
    assert_eq!(moved.sandbox.workspace, record.sandbox.workspace);
    assert_eq!(moved.events[0].data.transition().unwrap().actor, Actor::Atm);
}

#[tokio::test]
async fn a_refused_move_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let id = store.insert(new(1, None)).await.unwrap().id;
    let before = (store.record(id).await.unwrap(), store.events(0, 100).await.unwrap());
    // The first step alone would be allowed.
    let refused = store.transition(id, Move::to(State::Ready).then(State::Destroyed)).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { from: State::Ready, to: State::Destroyed, .. }), "{refused}");
    assert_eq!((store.record(id).await.unwrap(), store.events(0, 100).await.unwrap()), before);
    let missing = store.transition(SandboxId::from_bits(2), Move::to(State::Ready)).await.unwrap_err();
    assert!(matches!(missing, Error::NoSandbox { .. }), "{missing}");
}

#[tokio::test]
async fn of_many_at_once_one_gets_the_name_and_it_is_free_again_afterwards() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for bits in 0..100 {
        let store = store.clone();
        // Every other one wants no name, and must not suffer from its neighbours' refusal.
        let name = (bits % 2 == 0).then_some("a");
        tasks.spawn(async move { store.insert(new(bits, name)).await });
    }
    let made: Vec<_> = tasks.join_all().await;
    let (made, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (51, 49));
    assert!(refused.iter().all(|error| matches!(error, Err(Error::NameTaken { .. }))));
    assert_eq!(store.records(Which::Existing).await.unwrap().len(), 51);

    let name: Name = "a".parse().unwrap();
    let holder = made.into_iter().flatten().find(|sandbox| sandbox.name.as_ref() == Some(&name)).unwrap();
    destroy(&store, holder.id).await;
    store.insert(new(1000, Some("a"))).await.unwrap();
    assert_eq!(store.records(Which::Existing).await.unwrap().len(), 51);
    assert_eq!(store.records(Which::All).await.unwrap().len(), 52);
}

#[tokio::test]
async fn subscribers_hear_what_the_store_holds() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let mut live = store.subscribe();
    let id = store.insert(new(1, None)).await.unwrap().id;
    destroy(&store, id).await;
    let stored = store.events(0, 100).await.unwrap();
    assert_eq!(stored.iter().map(|event| event.sequence).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(store.events(2, 1).await.unwrap(), stored[2..3]);
    for event in stored {
        assert_eq!(live.recv().await.unwrap(), event);
    }
    store.close().await;
    assert!(matches!(live.recv().await, Err(broadcast::error::RecvError::Closed)));
    assert!(matches!(store.record(id).await, Err(Error::Closed)));
}

#[tokio::test]
async fn old_records_and_events_are_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let kept = store.insert(new(0, None)).await.unwrap().id;
    for bits in 1..=2600 {
        let id = store.insert(new(bits, None)).await.unwrap().id;
        destroy(&store, id).await;
    }
    store.prune().await.unwrap();
    let records = store.records(Which::All).await.unwrap();
    assert_eq!(records.len(), 1001);
    assert_eq!((records[0].sandbox.id, records[1].sandbox.id), (kept, SandboxId::from_bits(1601)));
    let events = store.events(0, usize::MAX).await.unwrap();
    assert_eq!((events.len(), events[9_999].sequence), (10_000, 2 + 4 * 2600));
    let log = || std::fs::metadata(home.path().join("zeno.db-wal")).unwrap().len();
    assert!(log() > 4 << 20);
    store.checkpoint().unwrap();
    assert_eq!(log(), 0);
}

#[tokio::test]
async fn a_full_disk_is_told_as_such_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let pages = |most: u32| {
        store.call(move |page| {
            page.connection
                .pragma_update_and_check(None, "max_page_count", most, |_row| Ok(()))
                .map_err(|source| Error::Prune { source })
        })
    };
    pages(40).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for bits in 0..400 {
        let store = store.clone();
        tasks.spawn(async move { store.insert(new(bits, None)).await });
    }
    let outcomes = tasks.join_all().await;
    let (made, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert!(!made.is_empty() && !refused.is_empty());
    assert!(refused.iter().filter_map(|outcome| outcome.as_ref().err()).any(Error::is_disk_full));

    pages(1 << 20).await.unwrap();
    let id = store.insert(new(1000, None)).await.unwrap().id;
    let mut told: Vec<_> = made.into_iter().map(|made| made.unwrap().id).chain([id]).collect();
    let mut kept: Vec<_> =
        store.records(Which::All).await.unwrap().into_iter().map(|record| record.sandbox.id).collect();
    told.sort();
    kept.sort();
    assert_eq!(kept, told);
    let events = store.events(0, usize::MAX).await.unwrap();
    assert_eq!(events.len(), 2 * kept.len());
    assert_eq!(events.last().unwrap().sequence as usize, events.len());
}

#[test]
fn only_the_owner_can_read_it() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("a/b");
    let _store = Store::open(&folder).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["zeno.db", "zeno.db-wal", "zeno.db-shm"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_newer_store_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = schema::prepare(home.path()).unwrap();
    let connection = schema::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(home.path()), Err(Error::Newer { found: 99, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_store_walks_the_table_and_nothing_else(wishes in prop::collection::vec(0..State::ALL.len(), 1..40)) {
        let home = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = Store::open(home.path()).unwrap();
            let id = store.insert(new(1, None)).await.unwrap().id;
            let mut walked = vec![State::Requested, State::Provisioning];
            for wish in wishes {
                let to = State::ALL[wish];
                let from = *walked.last().unwrap();
                let moved = store.transition(id, Move::to(to)).await;
                prop_assert_eq!(moved.is_ok(), from.can_become(to), "{} to {}", from, to);
                if moved.is_ok() {
                    walked.push(to);
                }
                prop_assert_eq!(store.record(id).await.unwrap().unwrap().sandbox.state, *walked.last().unwrap());
            }
            let told: Vec<_> = store.events(0, 1000).await.unwrap().into_iter().map(|event| event.data.transition().unwrap().to).collect();
            prop_assert_eq!(told, walked);
            Ok(())
        })?;
    }
}

/// What a backend would write: only the store's own columns matter here.
fn saved(layers: &[&str]) -> Saved {
    let plan = serde_json::json!({"hostname": "h", "root": "FirstPart", "parts": [], "net": "none", "nested": false, "pids": 1});
    let text =
        serde_json::json!({"plan": plan, "frozen": null, "masked": [], "caveats": [], "layers": layers});
    serde_json::from_value(text).unwrap()
}

fn snapshot_of(
    order: &NewRecord,
    bits: u64,
    parent: Option<SnapshotId>,
    name: Option<&str>,
) -> SnapshotRecord {
    let snapshot = Snapshot {
        id: SnapshotId::from_bits(bits),
        name: name.map(|name| name.parse().unwrap()),
        sandbox: order.id,
        sandbox_name: order.request.name.clone(),
        parent,
        reason: model::snapshot::SnapshotReason::Asked,
        created: now(),
        expires: None,
        size: None,
        depth: 1,
        workspace: Some("/work".into()),
        labels: [("k".to_owned(), "v".to_owned())].into(),
        actor: Actor::Agt,
    };
    SnapshotRecord { snapshot, request: order.request.clone(), saved: saved(&["lyaaaaaaaaaaaa"]) }
}

#[tokio::test]
async fn a_snapshot_reads_back_and_its_heirs_are_its_parents() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let order = new(1, Some("a"));
    store.insert(order.clone()).await.unwrap();
    store.set_restarting(order.id, true).await.unwrap();
    let first = snapshot_of(&order, 1, None, Some("first"));
    let second = snapshot_of(&order, 2, Some(first.snapshot.id), None);
    let third = snapshot_of(&order, 3, Some(second.snapshot.id), None);
    for record in [&first, &second, &third] {
        store.insert_snapshot(record.clone()).await.unwrap();
    }
    let taken = store.insert_snapshot(snapshot_of(&order, 4, None, Some("first"))).await.unwrap_err();
    assert!(matches!(taken, Error::SnapshotNameTaken { .. }), "{taken}");
    let all = store.snapshots().await.unwrap();
    assert_eq!(
        all.iter().map(|record| &record.snapshot).collect::<Vec<_>>(),
        [&first.snapshot, &second.snapshot, &third.snapshot]
    );
    assert_eq!((&all[0].request, all[0].saved.layers()), (&order.request, first.saved.layers()));
    let record = store.record(order.id).await.unwrap().unwrap();
    assert_eq!((record.sandbox.snapshot, record.restarting), (Some(third.snapshot.id), false));

    for gone in [&second, &third] {
        store.remove_snapshot(gone.snapshot.id, Actor::Adm).await.unwrap();
    }
    let record = store.record(order.id).await.unwrap().unwrap();
    assert_eq!(record.sandbox.snapshot, Some(first.snapshot.id));
    let missing = store.remove_snapshot(third.snapshot.id, Actor::Adm).await.unwrap_err();
    assert!(matches!(missing, Error::NoSnapshot { .. }), "{missing}");
    store.rolled_back(order.id, first.snapshot.id).await.unwrap();
    // Both at once, and they outlive their sandbox.
    store.set_saved(vec![(first.snapshot.id, saved(&["lybbbbbbbbbbbb", "lycccccccccccc"]))]).await.unwrap();
    destroy(&store, order.id).await;
    let all = store.snapshots().await.unwrap();
    assert_eq!((all.len(), all[0].snapshot.depth), (1, 2));
    assert_eq!(all[0].request.context.env, order.request.context.env);
    let kinds: Vec<_> = store.events(2, 100).await.unwrap().into_iter().map(|event| event.kind).collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.trim_start_matches("dev.zeno.")).collect();
    assert_eq!(
        kinds,
        [
            "snapshot.made",
            "snapshot.made",
            "snapshot.made",
            "snapshot.removed",
            "snapshot.removed",
            "snapshot.rolled-back",
            "sandbox.destroying",
            "sandbox.destroyed"
        ]
    );
}
