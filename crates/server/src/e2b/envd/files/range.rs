//! Parts of a file, as RFC 9110 has them: one at a time. Whoever asks for several gets the whole, which is allowed.

use axum::http::header::{CONTENT_RANGE, IF_RANGE, RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::files::Part;

use crate::e2b::failure::Failure;

pub(super) fn asked(headers: &HeaderMap) -> Option<Part> {
    // Nothing here tells one state of a file from another, so no condition on that is met.
    if headers.contains_key(IF_RANGE) {
        return None;
    }
    part(headers.get(RANGE)?.to_str().ok()?)
}

fn part(text: &str) -> Option<Part> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    match (first.trim(), last.trim()) {
        ("", length) => Some(Part::Last { length: number(length)? }),
        (first, "") => Some(Part::From { first: number(first)?, last: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Part::From { first, last: Some(last) })
        }
    }
}

/// `length` bytes, not none of them.
pub(super) fn told(first: u64, length: u64, size: u64) -> HeaderValue {
    let last = first.saturating_add(length).saturating_sub(1);
    HeaderValue::try_from(format!("bytes {first}-{last}/{size}")).expect("it is plain text")
}

pub(super) fn nothing_there(size: u64) -> Response {
    let failure = Failure::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the file has only {size} bytes"));
    let mut response = failure.into_response();
    let all = HeaderValue::try_from(format!("bytes */{size}")).expect("it is plain text");
    response.headers_mut().insert(CONTENT_RANGE, all);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_understood_and_anything_else_is_the_whole() {
        assert_eq!(part("bytes=0-4"), Some(Part::From { first: 0, last: Some(4) }));
        assert_eq!(part("bytes=7-"), Some(Part::From { first: 7, last: None }));
        assert_eq!(part("bytes=-5"), Some(Part::Last { length: 5 }));
        for other in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=4-2",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=+1-2",
        ] {
            assert_eq!(part(other), None, "{other}");
        }
        assert_eq!(told(2, 3, 10), "bytes 2-4/10");
    }
}
