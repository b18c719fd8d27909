//! A request that was looked at, as `zeno requests show` shows it: much as it went over the wire.

use model::request::{Http, Message};

use super::paint::Paint;
use super::words::clean;

/// What was asked for, in one line.
pub(super) fn address(http: &Http) -> String {
    let Http { method, scheme, host, path, .. } = http;
    let address = format!("{method} {scheme}://{host}{path}");
    let short = match address.char_indices().nth(LONGEST) {
        Some((place, _)) => format!("{}...", &address[..place]),
        None => address,
    };
    clean(&short).into_owned()
}

/// Both halves.
pub(super) fn exchange(http: &Http, paint: Paint) -> String {
    let asked = format!("{} {}", http.method, http.path);
    let mut text = message(&asked, &http.request, paint);
    if let Some(response) = &http.response {
        let status = http.status.map(|status| status.to_string()).unwrap_or_default();
        text += &message(&status, response, paint);
    }
    text
}

fn message(first: &str, message: &Message, paint: Paint) -> String {
    let mut text = format!("\n{} {}\n", clean(first), paint.dim(&message.version));
    for header in &message.headers {
        text += &format!("{}: {}\n", paint.dim(&clean(&header.name)), clean(&header.value));
    }
    match &message.text {
        Some(body) => {
            text.push('\n');
            for line in body.lines() {
                text += &format!("{}\n", clean(line));
            }
            if message.is_cut {
                text += &paint.dim(&format!("(the beginning of {} bytes)\n", message.size));
            }
        }
        None if message.is_left_out => {
            let size = message.size;
            text +=
                &paint.dim(&format!("\n({size} bytes, of which nothing is kept: too many bodies at once)\n"));
        }
        None if message.size > 0 => text += &paint.dim(&format!("\n({} bytes)\n", message.size)),
        None => {}
    }
    text
}

/// Characters of an address in a list.
const LONGEST: usize = 120;

#[cfg(test)]
mod tests {
    use model::request::Header;

    use super::*;

    #[test]
    fn both_halves() {
        let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
        let version = "HTTP/1.1".to_owned();
        let http = Http {
            method: "POST".to_owned(),
            scheme: "https".to_owned(),
            host: "api.example.org".to_owned(),
            path: "/v1/x?token=[redacted]".to_owned(),
            status: Some(200),
            request: Message {
                version: version.clone(),
                headers: vec![
                    header("authorization", "[redacted]"),
                    header("content-type", "application/json"),
                ],
                content_type: Some("application/json".to_owned()),
                size: 9,
                text: Some("{\"a\": 1}\n".to_owned()),
                ..Message::default()
            },
            response: Some(Message { version, size: 70_000, ..Message::default() }),
        };
        let left_out = Message { size: 9, is_left_out: true, ..Message::default() };
        assert!(
            message("GET /", &left_out, Paint::Plain)
                .ends_with("\n(9 bytes, of which nothing is kept: too many bodies at once)\n")
        );
        assert_eq!(address(&http), "POST https://api.example.org/v1/x?token=[redacted]");
        insta::assert_snapshot!(exchange(&http, Paint::Plain), @r#"

        POST /v1/x?token=[redacted] HTTP/1.1
        authorization: [redacted]
        content-type: application/json

        {"a": 1}

        200 HTTP/1.1

        (70000 bytes)
        "#);
    }
}
