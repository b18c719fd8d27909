//! The store survives its process being killed at any instant.
//!
//! This program starts itself again as a child that moves sandboxes about without end, kills it with -9 at a random
//! moment, fifty times over, and looks at what is left each time. It has its own `main` because it is both.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use control::store::{Move, NewRecord, Store, Which};
use model::{SandboxId, State};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(role), Some(home)) if role == CHILD => runtime.block_on(move_about(Path::new(&home))),
        _ => runtime.block_on(kill_and_look()),
    }
}

async fn kill_and_look() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let mut before = 0;
    for round in 0..ROUNDS {
        let promised = killed_child(home.path())?;
        let store = Store::open(home.path())?;
        let seen = look(&store).await?;
        store.close().await;
        assert!(seen >= promised, "round {round}: event {promised} was answered, and {seen} is the last");
        assert!(seen > before, "round {round}: the child did nothing");
        before = seen;
    }
    Ok(())
}

/// Runs a child for a moment and returns the last event it was promised.
fn killed_child(home: &Path) -> Result<u64, Box<dyn Error>> {
    let mut child =
        Command::new(std::env::current_exe()?).arg(CHILD).arg(home).stdout(Stdio::piped()).spawn()?;
    let mut promises = BufReader::new(child.stdout.take().ok_or("the child has a pipe")?);
    let mut told = String::new();
    promises.read_line(&mut told)?;
    std::thread::sleep(Duration::from_micros(getrandom::u64()? % 30_000));
    child.kill()?;
    child.wait()?;
    promises.read_to_string(&mut told)?;
    // The last line may be cut off.
    let whole = told.rsplit_once('\n').ok_or("the child was promised something")?.0;
    let promised = whole.lines().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    Ok(promised.into_iter().max().ok_or("the child was promised something")?)
}

/// Checks that records and events tell the same story, and returns the number of the last event.
async fn look(store: &Store) -> Result<u64, Box<dyn Error>> {
    let events = store.events(0, usize::MAX).await?;
    let mut last: HashMap<SandboxId, State> = HashMap::new();
    for (expected, event) in (1..).zip(&events) {
        assert_eq!(event.sequence, expected, "a gap");
        let told = event.data.transition().expect("only moves are made here");
        let before = last.insert(told.sandbox, told.to);
        assert_eq!(told.from, before, "event {expected} does not follow from the one before");
    }
    let records = store.records(Which::All).await?;
    let stored: HashMap<_, _> =
        records.into_iter().map(|record| (record.sandbox.id, record.sandbox.state)).collect();
    assert_eq!(stored, last);
    Ok(events.len() as u64)
}

async fn move_about(home: &Path) -> Result<(), Box<dyn Error>> {
    let store = Store::open(home)?;
    let mut walkers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        walkers.spawn(walk(store.clone()));
    }
    while let Some(ended) = walkers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn walk(store: Store) -> Result<(), control::store::Error> {
    loop {
        let id = SandboxId::from_bits(random());
        let order =
            NewRecord { id, request: Default::default(), expires: None, throwaway: false, snapshot: None };
        let mut at = store.insert(order).await?.state;
        while let Some(&next) = at.next().get(random() as usize % at.next().len().max(1)) {
            let moved = store.transition(id, Move::to(next)).await?;
            promised(moved.events[0].sequence);
            at = next;
        }
    }
}

fn promised(sequence: u64) {
    // One write, so that lines of several walkers do not mix.
    std::io::stdout().write_all(format!("{sequence}\n").as_bytes()).expect("the parent reads");
}

fn random() -> u64 {
    getrandom::u64().expect("the kernel has random numbers")
}

const CHILD: &str = "--move-about-in";
const ROUNDS: usize = 50;
