//! Times, names and paths in few characters.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use model::Sandbox;
use model::exec::Text;

/// What people call it.
pub(crate) fn name(sandbox: &Sandbox) -> String {
    sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string)
}

/// How long ago, in its largest unit: `3m`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    units(between(then, now), 1)
}

/// How far away, in its two largest units: `1h57m`; `now` when it is over. Rounded, so that a week which has just
/// begun is `7d` and not `6d23h`.
pub(crate) fn left(until: Timestamp, now: Timestamp) -> String {
    let remaining = between(now, until);
    if remaining.is_zero() {
        return "now".to_owned();
    }
    let seconds = remaining.as_secs() + u64::from(remaining.subsec_nanos() > 0);
    let grain = match seconds {
        86_400.. => 3600,
        3600.. => 60,
        _ => 1,
    };
    units(Duration::from_secs((seconds + grain / 2) / grain * grain), 2)
}

/// A path as text that cannot play tricks on a terminal.
pub(crate) fn path(path: &Text, home: Option<&Path>) -> String {
    let shown = Path::new(path.as_os_str());
    match home.and_then(|home| shown.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => clean(&format!("~/{}", rest.display())).into_owned(),
        None => clean(&path.display()).into_owned(),
    }
}

/// Text from inside a sandbox, or from a file's name: control characters are spelled out.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// How long something took, as exactly as anybody wants to know: `40ms`, `1.3s`, `2m5s`.
pub(crate) fn took(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis}ms"),
        1000..60_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        _ => units(Duration::from_millis(millis), 2),
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

fn units(duration: Duration, most: usize) -> String {
    let mut seconds = duration.as_secs();
    let mut text = String::new();
    let mut used = 0;
    for (size, unit) in [(86_400, 'd'), (3600, 'h'), (60, 'm'), (1, 's')] {
        if seconds >= size && used < most {
            write!(text, "{}{unit}", seconds / size).expect("writing to a string cannot fail");
            seconds %= size;
            used += 1;
        } else if used > 0 {
            // `1d5s` would look like two neighbouring units.
            break;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let cases = [
            (0, "0s", "now"),
            (59, "59s", "59s"),
            (200, "3m", "3m20s"),
            (7200, "2h", "2h"),
            (90_061, "1d", "1d1h"),
        ];
        for (seconds, ago, ahead) in cases {
            assert_eq!(
                (age(at(0), at(seconds)), left(at(seconds), at(0))),
                (ago.to_owned(), ahead.to_owned())
            );
        }
        assert_eq!([40, 1390, 125_000].map(took), ["40ms", "1.3s", "2m5s"]);
        assert_eq!(age(at(86_405), at(0)), "0s", "a clock that went back");
        assert_eq!(left(at(86_405), at(0)), "1d");
        assert_eq!(left(at(7 * 86_400 - 2), at(0)), "7d");
        assert_eq!(left(at(0), Timestamp::from_millisecond(-1).unwrap()), "1s");
    }

    #[test]
    fn a_path_cannot_play_tricks() {
        let home = Some(Path::new("/home/ada"));
        assert_eq!(path(&"/home/ada/src".into(), home), "~/src");
        assert_eq!(path(&"/home/ada".into(), home), "~");
        assert_eq!(path(&"/home/adam".into(), home), "/home/adam");
        assert_eq!(path(&"/a\x1b[2J\nb".into(), home), "/a\\u{1b}[2J\\nb");
    }
}
