//! Work that blocks, one piece at a time: what waits for its turn holds no thread.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::JoinError;

#[derive(Debug)]
pub(super) struct Turn<T>(Arc<Mutex<T>>);

impl<T: Send + 'static> Turn<T> {
    pub(super) fn new(tool: T) -> Self {
        Self(Arc::new(Mutex::new(tool)))
    }

    /// Works with it where waiting harms nobody, when those before have.
    pub(super) async fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce(&T) -> R + Send + 'static,
    ) -> Result<R, JoinError> {
        let tool = Arc::clone(&self.0).lock_owned().await;
        tokio::task::spawn_blocking(move || work(&tool)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    /// With one thread for all that blocks, somebody else's work waits for one piece of this and not for all.
    #[test]
    fn whoever_waits_holds_no_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (turn, done) = (Arc::new(Turn::new(())), Arc::new(AtomicUsize::new(0)));
            let (begin, begun) = std::sync::mpsc::channel();
            let begun = Arc::new(std::sync::Mutex::new(begun));
            let mut all = JoinSet::new();
            for _ in 0..100 {
                let (turn, done, begun) = (Arc::clone(&turn), Arc::clone(&done), Arc::clone(&begun));
                all.spawn(async move {
                    let work = move |(): &()| {
                        begun.lock().unwrap().recv().unwrap();
                        done.fetch_add(1, Ordering::Relaxed)
                    };
                    turn.work(work).await.unwrap()
                });
            }
            // All of them have asked for their turn by now.
            tokio::task::yield_now().await;
            let seen = Arc::clone(&done);
            let other = tokio::task::spawn_blocking(move || seen.load(Ordering::Relaxed));
            (0..100).for_each(|_| begin.send(()).unwrap());
            assert_eq!(other.await.unwrap(), 1);
            all.join_all().await;
            assert_eq!(done.load(Ordering::Relaxed), 100);
        });
    }
}
