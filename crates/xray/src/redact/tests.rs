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
        format!(r#"{{"pass\u0077ord":"{PLANTED}"}}"#),
        // Cut in the middle.
        format!(r#"{{"user":"ann","client_secret":"{PLANTED}"#),
        format!(r#"{{"note":"use Bearer {PLANTED}"}}"#),
    ] {
        check(&redactor().body("application/json", body.as_bytes()).unwrap());
    }
    let plain = r#"{"model":"m","max_tokens":100,"messages":[{"role":"user"}]}"#;
    assert_eq!(redactor().body("application/vnd.api+json", plain.as_bytes()).unwrap(), plain);
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
