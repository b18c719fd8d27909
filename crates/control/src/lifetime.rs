//! When a sandbox's time is over. Init holds the deadline on the boot clock; this is the wall clock's side of it,
//! which people see and which decides after a restart of the machine.

use std::time::Duration;

use jiff::Timestamp;
use model::Sandbox;
use model::limits::{Defaults, Limits, OnExpire};

/// From creation, or from the last start.
pub(crate) fn span(limits: &Limits) -> Duration {
    limits.ttl.unwrap_or(Defaults::TTL).0
}

pub(crate) fn on_expire(limits: &Limits) -> OnExpire {
    limits.on_expire.unwrap_or(Defaults::ON_EXPIRE)
}

pub(crate) fn expires(now: Timestamp, span: Duration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}

pub(crate) fn is_over(expires: Option<Timestamp>, now: Timestamp) -> bool {
    expires.is_some_and(|expires| expires <= now)
}

/// What is left of it, nothing if it is over.
pub(crate) fn left(expires: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(expires.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// Why init ended the sandbox: it says only that its clock ran out, not which of the two.
pub(crate) fn reason(sandbox: &Sandbox, now: Timestamp) -> String {
    match (sandbox.limits.idle, sandbox.expires) {
        (Some(idle), expires) if !is_over(expires, self::expires(now, CLOCK_SLACK)) => {
            format!("no command ran in it for {idle} (its idle limit)")
        }
        (_, Some(expires)) => format!("its time was over at {}", expires.strftime("%Y-%m-%d %H:%M:%S UTC")),
        (_, None) => "its time was over".to_owned(),
    }
}

/// By how much the wall clock may lag behind the boot clock without the reason being told wrong.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// How long a snapshot is kept that nobody asked for.
pub(crate) const UNASKED: Duration = Defaults::UNASKED_SNAPSHOT.0;

#[cfg(test)]
mod tests {
    use model::units::Span;

    use super::*;

    #[test]
    fn the_default_applies_where_none_was_given() {
        assert_eq!(span(&Limits::default()), Defaults::TTL.0);
        assert_eq!(
            span(&Limits { ttl: Some(Span::from_secs(5)), ..Default::default() }),
            Duration::from_secs(5)
        );
        assert_eq!(on_expire(&Limits::default()), OnExpire::Stop);
    }

    #[test]
    fn what_is_left_and_what_is_over() {
        let start = Timestamp::from_second(1_000).unwrap();
        let end = expires(start, Duration::from_secs(60));
        assert_eq!(end.as_second(), 1_060);
        assert_eq!(left(end, start), Duration::from_secs(60));
        assert_eq!(left(start, end), Duration::ZERO);
        assert!(!is_over(Some(end), start));
        assert!(is_over(Some(end), end));
        assert!(!is_over(None, end));
        assert_eq!(expires(Timestamp::MAX, Duration::from_secs(1)), Timestamp::MAX);
    }
}
