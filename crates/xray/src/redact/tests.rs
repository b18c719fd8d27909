use super::*;

const PLANTED: &str = "hunter2-correct-horse";

fn redactor() -> Redactor {
    Redactor::default()
}

#[track_caller]
fn check(shown: &str) {
    assert!(!shown.contains("hunter2") && shown.contains(REDACTED), "{shown}");
}

#[test]
fn headers_and_cookies() {
    for name in ["Authorization", "cookie", "Set-Cookie", "X-Api-Key", "private-token", "X-Hub-Signature"] {
        check(&redactor().header(name, PLANTED));
    }
    check(&redactor().header("x-other", &format!("Bearer {PLANTED}")));
    check(&redactor().header("Location", &format!("https://a.example/cb?access_token={PLANTED}&x=1")));
    assert_eq!(redactor().header("content-type", "text/plain"), "text/plain");
}

#[test]
fn queries_and_forms() {
    check(&redactor().path(&format!("/x?a=1&access_token={PLANTED}&b=2")));
    check(&redactor().path(&format!("/x?client%5Fsecret={PLANTED}")));
    check(&redactor().path(&format!("/x?next=Bearer%20{PLANTED}")));
    let form = format!("user=ann&password={PLANTED}");
    check(&redactor().body("application/x-www-form-urlencoded; charset=utf-8", form.as_bytes()).unwrap());
    assert_eq!(redactor().path("/x?page=2&q=a+b"), "/x?page=2&q=a+b");
}

#[test]
fn json() {
    for body in [
        format!(r#"{{"user":"ann","password":"{PLANTED}"}}"#),
        format!(r#"{{"a":[{{"refreshToken" : "{PLANTED}"}}]}}"#),
        format!(r#"{{"credentials":{{"any":"{PLANTED}"}}}}"#),
        format!(r#"{{"credentials":["a",{{"b":["{PLANTED}"]}}],"c":1}}"#),
        format!(r#"{{"pass\u0077ord":"{PLANTED}"}}"#),
        format!(r#"{{"note":"use Bearer {PLANTED}"}}"#),
        format!(r#"{{"note":"{{\"password\":\"{PLANTED}\"}}"}}"#),
        format!("{{\"a\":1}}\n{{\"password\":\"{PLANTED}\"}}\n"),
    ] {
        // Whatever it is said to be.
        for kind in ["application/json", "application/x-www-form-urlencoded", "text/plain;charset=UTF-8"] {
            check(&redactor().body(kind, body.as_bytes()).unwrap());
            check(&redactor().body(kind, format!("\u{feff}\n {body}").as_bytes()).unwrap());
            // Cut anywhere.
            for length in 0..body.len() {
                let shown = redactor().body(kind, &body.as_bytes()[..length]).unwrap();
                // What has been cut to a few letters looks like nothing.
                assert!(!shown.contains("hunter2-c"), "{shown}");
            }
        }
    }
    let plain = r#"{"model":"m","max_tokens":100,"messages":[{"role":"user"}], "ok" : true,"token":null}"#;
    assert_eq!(redactor().body("application/vnd.api+json", plain.as_bytes()).unwrap(), plain);
    let shown =
        redactor().body("application/json", br#"{"token": 12, "auth": {"a": [1]}, "page": -2.5}"#).unwrap();
    assert_eq!(shown, r#"{"token": "[redacted]", "auth": "[redacted]", "page": -2.5}"#);
}

#[test]
fn fields_within_other_text() {
    for body in [
        format!("data: {{\"password\": \"{PLANTED}\"}}\n\n"),
        format!("log: {{\\\"password\\\": \\\"{PLANTED}\\\"}}"),
        format!("<login><user>ann</user><password>{PLANTED}</password></login>"),
        format!("<s:Body><wsse:Password Type=\"text\">{PLANTED}</wsse:Password>"),
        format!("<a><clientSecret><![CDATA[{PLANTED}<>]]></clientSecret></a>"),
        format!("<user name=\"ann\" password=\"{PLANTED}\"/>"),
        format!("<user api-key = '{PLANTED}'"),
    ] {
        for kind in ["application/xml", "text/plain", "application/soap+xml"] {
            check(&redactor().body(kind, body.as_bytes()).unwrap());
            let cut = &body[..body.len() - 4];
            assert!(!redactor().body(kind, cut.as_bytes()).unwrap().contains("hunter2"), "{cut}");
        }
    }
    check(&redactor().path(&format!("/x?filter=%7B%22password%22%3A%22{PLANTED}%22%7D")));
    let plain = "<page title=\"a\"><p class='b'>token of <b>thanks</b></p></page>";
    assert_eq!(redactor().body("text/html", plain.as_bytes()).unwrap(), plain);
}

#[test]
fn by_what_it_looks_like() {
    for text in [
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEow",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "postgres://ann:hunter2@db/x",
        "DB_PASSWORD=hunter2!",
    ] {
        let shown = redactor().body("text/plain", text.as_bytes()).unwrap();
        assert!(shown.contains(REDACTED), "{text} -> {shown}");
    }
    assert_eq!(redactor().body("image/png", b"x"), None);
}

#[test]
fn what_is_known_is_taken_out_everywhere() {
    let redactor = Redactor::new(vec![SecretValue::new(PLANTED.to_owned())]);
    check(&redactor.header("x-echo", PLANTED));
    check(&redactor.path(&format!("/{PLANTED}")));
    check(&redactor.body("text/html", format!("<p>{PLANTED}</p>").as_bytes()).unwrap());
}
