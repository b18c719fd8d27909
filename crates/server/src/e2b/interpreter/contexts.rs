//! The contexts of every sandbox, in memory only: they end with their sandbox's processes, and with the daemon.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::Control;
use model::SandboxId;
use tokio::sync::Semaphore;

use super::bridge::{self, Settings};
use super::context::{Context, New};
use super::failure::Refused;
use super::wire::Listed;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interpreters(Arc<Mutex<HashMap<SandboxId, Arc<Interpreter>>>>);

/// The contexts of one sandbox.
#[derive(Debug)]
pub(super) struct Interpreter {
    sandbox: SandboxId,
    contexts: Mutex<Vec<Arc<Context>>>,
    room: Arc<Semaphore>,
    /// Whether what an earlier daemon left is gone. Whoever starts the default context holds it, so that there is one.
    turn: tokio::sync::Mutex<bool>,
}

impl Interpreters {
    pub(super) fn of(&self, sandbox: SandboxId) -> Arc<Interpreter> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that somebody else holds may be about to have its first context.
        all.retain(|id, interpreter| {
            *id == sandbox
                || Arc::strong_count(interpreter) > 1
                || interpreter.contexts().iter().any(|one| one.is_live())
        });
        Arc::clone(all.entry(sandbox).or_insert_with(|| Arc::new(Interpreter::new(sandbox))))
    }
}

impl Interpreter {
    fn new(sandbox: SandboxId) -> Self {
        let (contexts, turn) = Default::default();
        Self { sandbox, contexts, room: Arc::new(Semaphore::new(MOST)), turn }
    }

    /// The context of this id, or the one that is used where none is named, which is started where there is none.
    pub(super) async fn find(
        self: Arc<Self>,
        control: &Control,
        id: Option<&str>,
    ) -> Result<Arc<Context>, Refused> {
        let known = match id {
            Some(id) => return self.named(id),
            None => self.default(),
        };
        if let Some(context) = known {
            return Ok(context);
        }
        let control = control.clone();
        to_the_end(async move {
            let _turn = self.turn(&control).await?;
            match self.default() {
                Some(context) => Ok(context),
                None => self.start(&control, New::called(new_id()?, true, Settings::default())).await,
            }
        })
        .await
    }

    pub(super) async fn open(
        self: Arc<Self>,
        control: &Control,
        settings: Settings,
    ) -> Result<Listed, Refused> {
        let control = control.clone();
        to_the_end(async move {
            drop(self.turn(&control).await?);
            let context = self.start(&control, New::called(new_id()?, false, settings)).await?;
            Ok(context.listed())
        })
        .await
    }

    pub(super) fn list(&self) -> Vec<Listed> {
        self.contexts().iter().filter(|context| context.is_live()).map(|context| context.listed()).collect()
    }

    pub(super) async fn close(self: Arc<Self>, id: &str) -> Result<(), Refused> {
        let context = self.named(id)?;
        to_the_end(async move {
            context.end().await;
            Ok(())
        })
        .await
    }

    /// A new kernel in place of the old one, under the same id.
    pub(super) async fn restart(self: Arc<Self>, control: &Control, id: &str) -> Result<(), Refused> {
        let (context, control) = (self.named(id)?, control.clone());
        to_the_end(async move {
            let _turn = self.turn(&control).await?;
            context.end().await;
            let Context { id, is_default, settings, .. } = &*context;
            self.start(&control, New::called(id.clone(), *is_default, settings.clone())).await.map(drop)
        })
        .await
    }

    async fn start(&self, control: &Control, new: New) -> Result<Arc<Context>, Refused> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|full| {
            tracing::debug!(sandbox = %self.sandbox, error = &full as &dyn std::error::Error, "no room for a context");
            Refused::TooMany { most: MOST }
        })?;
        let context = Context::start(control, self.sandbox, new, room).await?;
        let mut contexts = self.contexts();
        contexts.retain(|context| context.is_live());
        contexts.push(Arc::clone(&context));
        Ok(context)
    }

    /// What an earlier daemon left has been ended by then.
    async fn turn(&self, control: &Control) -> Result<tokio::sync::MutexGuard<'_, bool>, Refused> {
        let mut is_clean = self.turn.lock().await;
        if !*is_clean {
            bridge::end_earlier(control, self.sandbox).await?;
            *is_clean = true;
        }
        Ok(is_clean)
    }

    fn named(&self, id: &str) -> Result<Arc<Context>, Refused> {
        self.live(|context| context.id == id).ok_or_else(|| Refused::NoContext { id: id.to_owned() })
    }

    fn default(&self) -> Option<Arc<Context>> {
        self.live(|context| context.is_default)
    }

    fn live(&self, is_meant: impl Fn(&Context) -> bool) -> Option<Arc<Context>> {
        self.contexts().iter().find(|context| context.is_live() && is_meant(context)).cloned()
    }

    fn contexts(&self) -> MutexGuard<'_, Vec<Arc<Context>>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever asked may leave in the middle: what was begun is then there for the next one.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refused>> + Send + 'static,
) -> Result<T, Refused> {
    tokio::spawn(work).await.map_err(Refused::Task)?
}

fn new_id() -> Result<String, Refused> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Refused::Random)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(random)))
}

/// Contexts of one sandbox: each is two processes of it.
const MOST: usize = 32;
