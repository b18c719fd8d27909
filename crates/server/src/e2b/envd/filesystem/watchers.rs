//! Changes that are kept until somebody asks for them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::files::Change;
use model::{Code, Problem, SandboxId};
use tokio::task::AbortHandle;

use super::watch::Changes;
use crate::e2b::connect::{Error, ErrorCode};

/// Every watcher of this daemon. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::e2b::envd) struct Watchers(Arc<Mutex<HashMap<String, Watcher>>>);

#[derive(Debug)]
struct Watcher {
    sandbox: SandboxId,
    kept: Arc<Mutex<Kept>>,
    listening: AbortHandle,
    asked: Instant,
}

#[derive(Debug, Default)]
struct Kept {
    changes: Vec<Change>,
    weight: usize,
    /// Why there will be no more.
    end: Option<Error>,
}

impl Watchers {
    /// Keeps changes from now on, under this id.
    pub(super) fn begin(&self, sandbox: SandboxId, changes: Changes) -> Result<String, Error> {
        let id = new_id()?;
        let mut all = self.all();
        all.retain(|_, watcher| watcher.asked.elapsed() < FORGOTTEN);
        if all.values().filter(|watcher| watcher.sandbox == sandbox).count() >= MOST {
            let text = format!("a sandbox has at most {MOST} watchers: remove one");
            return Err(Error::new(ErrorCode::ResourceExhausted, text));
        }
        let kept = Arc::<Mutex<Kept>>::default();
        let listening = tokio::spawn(listen(changes, Arc::clone(&kept))).abort_handle();
        all.insert(id.clone(), Watcher { sandbox, kept, listening, asked: Instant::now() });
        Ok(id)
    }

    /// What was kept since the last time.
    pub(super) fn take(&self, sandbox: SandboxId, id: &str) -> Result<Vec<Change>, Error> {
        let mut all = self.all();
        let watcher =
            all.get_mut(id).filter(|watcher| watcher.sandbox == sandbox).ok_or_else(|| unknown(id))?;
        watcher.asked = Instant::now();
        lock(&watcher.kept).take()
    }

    pub(super) fn remove(&self, sandbox: SandboxId, id: &str) -> Result<(), Error> {
        let mut all = self.all();
        match all.get(id) {
            Some(watcher) if watcher.sandbox == sandbox => {
                all.remove(id);
                Ok(())
            }
            Some(_) | None => Err(unknown(id)),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Watcher>> {
        lock(&self.0)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Kept {
    /// `false`: there is no room for them.
    fn keep(&mut self, changes: Vec<Change>) -> bool {
        self.weight += changes.iter().map(weigh).sum::<usize>();
        if self.weight > HEAVIEST {
            return false;
        }
        self.changes.extend(changes);
        true
    }

    /// What there is, and why there is no more only after that.
    fn take(&mut self) -> Result<Vec<Change>, Error> {
        match &self.end {
            Some(end) if self.changes.is_empty() => Err(end.clone()),
            _ => {
                self.weight = 0;
                Ok(std::mem::take(&mut self.changes))
            }
        }
    }
}

async fn listen(mut changes: Changes, kept: Arc<Mutex<Kept>>) {
    loop {
        let next = changes.next().await;
        let mut kept = lock(&kept);
        match next {
            Ok(changes) => {
                if !kept.keep(changes) {
                    let text = "more changed than is kept until it is asked for";
                    kept.end = Some(Error::new(ErrorCode::ResourceExhausted, text));
                    return;
                }
            }
            Err(problem) => {
                kept.end = Some(problem.into());
                return;
            }
        }
    }
}

/// About how much memory a change takes.
fn weigh(change: &Change) -> usize {
    let entry = change.entry.as_ref().map_or(0, |entry| {
        let noted: usize = entry.metadata.iter().map(|(key, value)| 64 + key.len() + value.len()).sum();
        512 + entry.path.0.len() + noted
    });
    128 + change.name.0.len() + entry
}

fn new_id() -> Result<String, Error> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| Problem::from_error(Code::Internal, &error))?;
    let mut id = "w".to_owned();
    for byte in random {
        write!(id, "{byte:02x}").expect("a string takes all");
    }
    Ok(id)
}

fn unknown(id: &str) -> Error {
    Error::not_found(format!("watcher with id {id} not found"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of one sandbox.
const MOST: usize = 32;
/// What is kept of one watcher, in bytes: some 8,000 plain changes.
const HEAVIEST: usize = 2 << 20;
/// A watcher that nobody asks for so long is nobody's.
const FORGOTTEN: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use model::files::ChangeKind;

    use super::*;

    fn change(name: &str) -> Change {
        Change { name: name.into(), kind: ChangeKind::Write, entry: None }
    }

    #[test]
    fn what_is_kept_has_an_end_and_comes_before_the_error() {
        let mut kept = Kept::default();
        assert!(kept.keep(vec![change("a"), change("b")]));
        kept.end = Some(Error::not_found("gone"));
        assert_eq!(kept.take().unwrap(), [change("a"), change("b")]);
        assert_eq!(kept.take().unwrap_err().code, ErrorCode::NotFound);
        assert!(!Kept::default().keep(vec![change(&"x".repeat(HEAVIEST))]));
    }
}
