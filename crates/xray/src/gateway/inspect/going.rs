//! What has not ended yet on one connection: requests, and what became of those that changed their protocol.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::super::relay::Cut;
use super::chain;
use super::exchange::Exchange;
use super::stream::Counted;

#[derive(Debug, Default)]
pub(super) struct Going {
    exchanges: Mutex<Vec<Weak<Exchange>>>,
    tunnels: tokio::sync::Mutex<JoinSet<()>>,
}

impl Going {
    pub(super) fn begin(&self, exchange: &Arc<Exchange>) {
        let mut exchanges = self.exchanges();
        exchanges.retain(|exchange| exchange.strong_count() > 0);
        exchanges.push(Arc::downgrade(exchange));
    }

    pub(super) fn all(&self) -> Vec<Arc<Exchange>> {
        self.exchanges().iter().filter_map(Weak::upgrade).collect()
    }

    /// Passes on whatever both sides speak from now on.
    pub(super) async fn lead(&self, inside: OnUpgrade, outside: OnUpgrade, exchange: Arc<Exchange>) {
        self.tunnels.lock().await.spawn(tunnel(inside, outside, exchange));
    }

    /// Returns when what changed its protocol has ended.
    pub(super) async fn tunnels_end(&self) {
        let mut tunnels = self.tunnels.lock().await;
        while let Some(ended) = tunnels.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a connection that changed its protocol failed");
            }
        }
    }

    /// Writes down why all of it ends.
    pub(super) fn note(&self, cut: Cut) {
        self.all().iter().for_each(|exchange| exchange.end(Some(cut.to_string())));
    }

    /// Ends what would go on without its connection.
    pub(super) async fn end(&self) {
        self.tunnels.lock().await.shutdown().await;
    }

    fn exchanges(&self) -> MutexGuard<'_, Vec<Weak<Exchange>>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tunnel(inside: OnUpgrade, outside: OnUpgrade, exchange: Arc<Exchange>) {
    let both = tokio::try_join!(inside, outside);
    let error = match both {
        Ok((inside, outside)) => {
            let mut inside = Counted::new(TokioIo::new(inside), Arc::clone(&exchange));
            let mut outside = TokioIo::new(outside);
            let passed = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            passed.err().map(|error| chain(&error))
        }
        Err(error) => Some(chain(&error)),
    };
    exchange.end(error);
}
