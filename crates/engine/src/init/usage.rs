//! What the processes of a sandbox use, from its own `/proc`.

use rustix::param::{clock_ticks_per_second, page_size};

use super::wire::Used;
use crate::tree;

/// Of all processes together. A process that has ended counts for whoever waited for it, so the sum never falls while
/// they do; of init, who waits for the rest, only that counts.
pub(super) fn now() -> Used {
    let mut used = match tree::stat_of(INIT).and_then(|stat| times(&stat)) {
        Some(Times { waited_for, .. }) => Used { cpu: nanoseconds(waited_for), memory: 0 },
        None => Used::default(),
    };
    for process in tree::all() {
        // Who ended meanwhile is not there any more.
        let Some(stat) = tree::stat_of(process.pid) else { continue };
        let Some(Times { own, waited_for, pages }) = times(&stat) else { continue };
        used.cpu += nanoseconds(own + waited_for);
        used.memory += pages * page_size() as u64;
    }
    used
}

#[derive(Debug, PartialEq, Eq)]
struct Times {
    /// Clock ticks, in user and kernel mode.
    own: u64,
    /// The same of children that have ended and were waited for.
    waited_for: u64,
    /// In memory.
    pages: u64,
}

fn times(stat: &[u8]) -> Option<Times> {
    let mut fields = tree::after_name(stat)?.split(' ').skip(BEFORE_TIMES);
    let mut next = || fields.next()?.trim_end().parse::<u64>().ok();
    let own = next()? + next()?;
    let waited_for = next()? + next()?;
    let pages = fields.nth(BEFORE_PAGES)?.trim_end().parse().ok()?;
    Some(Times { own, waited_for, pages })
}

fn nanoseconds(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / clock_ticks_per_second())
}

/// What a sandbox's init is to itself.
const INIT: i32 = 1;
/// Fields of `/proc/<pid>/stat` between the name and the processor time, and between that and the pages in memory.
const BEFORE_TIMES: usize = 11;
const BEFORE_PAGES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_pages_of_a_process() {
        let stat =
            b"42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 0 1 0 100 9000 77 18446744073709551615 1";
        assert_eq!(times(stat), Some(Times { own: 23, waited_for: 27, pages: 77 }));
        assert_eq!(times(b"42 (a) S 1 2"), None);
    }

    #[test]
    fn this_test_uses_something() {
        let stat = std::fs::read("/proc/self/stat").unwrap();
        assert!(times(&stat).unwrap().pages > 0);
    }
}
