//! A stream of requests without gaps: first from the store, then as they happen, and each again when more is known of it.

use std::collections::{BTreeMap, VecDeque};

use control::{Control, Requests};
use model::Problem;
use model::net::Verdict;
use model::request::Request;
use tokio::sync::broadcast::{self, error::RecvError};

/// Requests after a cursor. The one exception: what the store has forgotten by its own limits.
#[derive(Debug)]
pub struct Follow {
    control: Control,
    live: broadcast::Receiver<Request>,
    which: Requests,
    source: Source,
    read: VecDeque<Request>,
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Where the store ends is asked first.
    Unknown,
    /// What comes after this one.
    Store(u64),
    Live,
}

impl Follow {
    /// `live` is older than anything that is read of the store, so nothing falls between the two.
    pub(crate) fn new(control: Control, live: broadcast::Receiver<Request>, which: Requests) -> Self {
        let source = which.after.map_or(Source::Unknown, Source::Store);
        Self { control, live, which, source, read: VecDeque::new(), told: Told::default() }
    }

    /// Waits for the next one. `None` when the daemon shuts down.
    pub async fn next(&mut self) -> Result<Option<Request>, Problem> {
        loop {
            while let Some(request) = self.read.pop_front() {
                // Also of those that are not wanted: they may be, when more is known of them.
                let is_news = self.told.is_news(&request);
                if is_news && self.which.has(&request) {
                    return Ok(Some(request));
                }
            }
            match self.source {
                Source::Unknown => {
                    let last = self.control.requests(Requests { limit: 1, ..Requests::default() }).await?;
                    self.told.last = last.first().map_or(0, |request| request.id);
                    self.source = Source::Live;
                }
                Source::Store(after) => {
                    // Whoever is in it: what is known of one may have made it one of these, or none.
                    let page = Requests { after: Some(after), limit: CHUNK, ..Requests::default() };
                    let page = self.control.requests(page).await?;
                    self.source = page.last().map_or(Source::Live, |request| Source::Store(request.id));
                    self.read.extend(page);
                }
                Source::Live => match self.live.recv().await {
                    Ok(request) => self.read.push_back(request),
                    // Too slow: the store knows.
                    Err(RecvError::Lagged(missed)) => {
                        tracing::debug!(missed, "a follower of requests reads the store again");
                        self.source = Source::Store(self.told.before_first_open());
                    }
                    Err(RecvError::Closed) => return Ok(None),
                },
            }
        }
    }
}

/// What was handed out last of each, as far back as it may matter.
#[derive(Debug, Default)]
struct Told {
    states: BTreeMap<u64, (Verdict, bool)>,
    /// The greatest number.
    last: u64,
}

impl Told {
    /// Is there more to it than was told?
    fn is_news(&mut self, request: &Request) -> bool {
        let state = (request.verdict, request.end.is_some());
        let before = self.states.insert(request.id, state);
        self.last = self.last.max(request.id);
        while self.states.len() > REMEMBERED {
            self.states.pop_first();
        }
        before != Some(state)
    }

    /// From here on there may be news in the store.
    fn before_first_open(&self) -> u64 {
        let is_open = |state: &(Verdict, bool)| *state == (Verdict::Allow, false);
        let first = self.states.iter().find(|(_, state)| is_open(state)).map(|(id, _)| *id);
        first.map_or(self.last, |id| id - 1)
    }
}

/// Read at once.
const CHUNK: usize = 256;
/// Many more than are open at once, and than wait to be read.
const REMEMBERED: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, verdict: Verdict, ended: bool) -> Request {
        let end = model::request::End { sent: 0, received: 0, milliseconds: 0, error: None };
        Request {
            id,
            time: jiff::Timestamp::UNIX_EPOCH,
            sandbox: model::SandboxId::from_bits(1),
            sandbox_name: None,
            protocol: model::request::Protocol::Tcp,
            name: None,
            address: None,
            port: None,
            verdict,
            rule: String::new(),
            process: None,
            end: ended.then_some(end),
            connection: None,
            http: None,
        }
    }

    #[test]
    fn only_what_changed_is_news_and_what_is_open_is_read_again() {
        let mut told = Told::default();
        for id in 1..=3 {
            assert!(told.is_news(&request(id, Verdict::Allow, false)));
        }
        assert!(!told.is_news(&request(2, Verdict::Allow, false)));
        assert_eq!(told.before_first_open(), 0);
        assert!(
            told.is_news(&request(1, Verdict::Deny, true)) && told.is_news(&request(3, Verdict::Allow, true))
        );
        assert_eq!(told.before_first_open(), 1);
        assert!(
            told.is_news(&request(2, Verdict::Allow, true))
                && !told.is_news(&request(2, Verdict::Allow, true))
        );
        assert_eq!(told.before_first_open(), 3);
    }
}
