//! Inspection, from inside real sandboxes: unmodified clients, each request decided about and on record, secrets nowhere.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{World, record};
use crate::home::{Home, finish, is_root};
use crate::wait::{end, until};

const SERVICE: &str = include_str!("service.mjs");
const SOCKET: &str = include_str!("socket.py");

/// Hosts with certificates of an authority that only the daemon of this test trusts.
pub(super) struct Hosts {
    pub(super) world: World,
    service: Child,
    seen: Arc<Mutex<String>>,
    folder: tempfile::TempDir,
}

impl Hosts {
    pub(super) fn new(home: &Home) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certify(folder.path());
        let script = folder.path().join("service.mjs");
        std::fs::write(&script, SERVICE).unwrap();
        let authority = folder.path().join("ca.pem");
        let world = World::with(home, &["--trust", authority.to_str().unwrap()]);
        let enter: &[&str] = if is_root() { &["-n"] } else { &["-U", "--preserve-credentials", "-n"] };
        let mut service = Command::new("nsenter")
            .args(["-t", &world.services.id().to_string()])
            .args(enter)
            .arg("node")
            .arg(&script)
            .arg(folder.path())
            .args(["93.184.216.34", "93.184.216.35"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(service.stdout.take().unwrap()).lines();
        std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || lines.map_while(Result::ok).for_each(|line| *seen.lock().unwrap() += &(line + "\n"))
        });
        let hosts = Self { world, service, seen, folder };
        until("the hosts to listen", || hosts.seen().contains("ready").then_some(()));
        hosts
    }

    pub(super) fn seen(&self) -> String {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn end(mut self, home: &Home) {
        home.ok(&["destroy", "--all", "--yes"]);
        home.ok(&["daemon", "stop"]);
        drop(self.service.stdin.take());
        end(&mut self.service);
        self.world.end();
        self.folder.close().unwrap();
    }
}

/// An authority, and a certificate of it for two names.
fn certify(folder: &Path) {
    let openssl = |words: &[&str]| {
        let made = Command::new("openssl").args(words).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let own = ["req", "-x509", "-days", "2", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem"];
    openssl(&[&own[..], &key].concat());
    let names = "subjectAltName=DNS:public.test,DNS:other.test";
    let leaf = ["req", "-subj", "/CN=leaf", "-addext", names, "-keyout", "leaf.key", "-out", "leaf.csr"];
    openssl(&[&leaf[..], &key].concat());
    let sign = ["x509", "-req", "-days", "2", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key"];
    openssl(&[&sign[..], &["-CAcreateserial", "-copy_extensions", "copyall", "-out", "leaf.pem"]].concat());
}

/// Everything below the home as bytes: does any of it hold one of these?
pub(super) fn is_in_files(folder: &Path, planted: &[&str]) -> Option<String> {
    for entry in std::fs::read_dir(folder).ok()?.map_while(Result::ok) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            if let Some(found) = is_in_files(&path, planted) {
                return Some(found);
            }
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let holds = |text: &&&str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            if let Some(text) = planted.iter().find(holds) {
                return Some(format!("{text} in {}", path.display()));
            }
        }
    }
    None
}

#[test]
fn unmodified_clients_are_decided_about_request_by_request() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    let net =
        "allow:public.test:8443/v1/*,GET other.test:8443,public.test:8080/v1/*,www.public.test:8443+inspect";
    home.create("web", &["--net", net]);
    let curl = |words: &str| {
        home.exec(
            "web",
            &format!("curl -sS --max-time 20 -w ' %{{http_version}} %{{http_code}}' {words} 2>&1"),
        )
        .out()
    };
    let shown = [
        curl("--http1.1 https://public.test:8443/v1/one"),
        curl("--http2 https://public.test:8443/v1/two -d x=1"),
        curl("http://public.test:8080/v1/three"),
        curl("https://public.test:8443/admin"),
        curl("--path-as-is https://public.test:8443/v1/../admin"),
        curl("http://public.test:8080/admin"),
        curl("https://other.test:8443/any"),
        curl("-X DELETE https://other.test:8443/any"),
        curl("-H 'Host: other.test' https://public.test:8443/v1/one"),
    ]
    .join("\n");
    insta::assert_snapshot!(shown, @r#"
    {"version":"2.0","method":"GET","path":"/v1/one","access_token":"planted-in-an-answer"} 1.1 200
    {"version":"2.0","method":"POST","path":"/v1/two","access_token":"planted-in-an-answer"} 2 200
    {"version":"1.1","method":"GET","path":"/v1/three","access_token":"planted-in-an-answer"} 1.1 200
    zeno: nothing allows GET of this path
     2 403
    zeno: its path can be read in more than one way
     2 403
    zeno: nothing allows GET of this path
     1.1 403
    {"version":"2.0","method":"GET","path":"/any","access_token":"planted-in-an-answer"} 2 200
    zeno: nothing allows DELETE of this path
     2 403
    zeno: it was to reach `public.test` and says `other.test`
     2 403
    "#);
    // Whoever has no good certificate outside is not passed off as good inside.
    let bad = curl("https://www.public.test:8443/");
    assert!(bad.contains("502") && bad.contains("certificate"), "{bad}");
    let word = home.ok(&["exec", "web", "--", "python3", "-c", SOCKET, "public.test", "8443"]);
    assert_eq!(word, "HTTP/1.1 101 Switching Protocols True hello\n");
    for program in [
        "import urllib.request as r; print(r.urlopen('https://public.test:8443/v1/python').status)",
        "import urllib.request as r; print(r.urlopen('http://public.test:8080/v1/python').status)",
    ] {
        assert_eq!(home.ok(&["exec", "web", "--", "python3", "-c", program]), "200\n");
    }
    let node = "fetch('https://public.test:8443/v1/node').then((answer) => console.log(answer.status))";
    assert_eq!(home.ok(&["exec", "web", "--", "node", "-e", node]), "200\n");
    assert!(!hosts.seen().contains("admin"), "{}", hosts.seen());
    // What another protocol says is not passed on.
    let other = "import socket; c = socket.create_connection(('public.test', 8443)); c.sendall(b'\\0\\1\\2')\n\
                 try: print(c.recv(9))\nexcept OSError as e: print(type(e).__name__)";
    assert_eq!(home.ok(&["exec", "web", "--", "python3", "-c", other]), "ConnectionResetError\n");
    let denied = record(&home, &["--denied"]);
    assert!(denied.contains("deny http public.test 8443: nothing allows GET of this path"), "{denied}");
    assert!(denied.contains("deny tcp public.test 8443: only HTTP passes"), "{denied}");
    let diff = home.json(&["diff", "web"]);
    assert!(!diff.to_string().contains("certificates"), "{diff}");
    hosts.end(&home);
}

#[test]
fn planted_secrets_are_in_no_record() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    home.create("web", &["--net", "allow:public.test:8443+inspect"]);
    let planted = [
        "planted-in-a-header",
        "planted-in-a-query",
        "planted-in-json",
        "planted-in-a-form",
        "planted-in-a-cookie",
        "planted-in-unnamed-json",
        "planted-in-a-beacon",
        "planted-in-xml",
        "planted-in-cut-json",
        "planted-in-an-answer",
    ];
    let at = "https://public.test:8443/v1";
    // Built inside from halves, because the command line itself is on record.
    let script = format!(
        "p=planted-in; curl -sS {at}/h -H \"Authorization: Bearer $p-a-header\" -b session=$p-a-cookie\n\
         curl -sS \"{at}/q?page=2&access_token=$p-a-query\"\n\
         curl -sS {at}/j -H 'content-type: application/json' -d '{{\"user\":\"ann\",\"password\":\"'$p-json'\"}}'\n\
         curl -sS {at}/f -d user=ann -d client_secret=$p-a-form\n\
         curl -sS {at}/u -d '{{\"user\":\"ann\",\"password\":\"'$p-unnamed-json'\"}}'\n\
         curl -sS {at}/b -H 'content-type: text/plain;charset=UTF-8' -d '{{\"token\":{{\"any\":\"'$p-a-beacon'\"}}}}'\n\
         curl -sS {at}/x -H 'content-type: text/xml' -d \"<a><password>$p-xml</password></a>\"\n\
         x=$(head -c 100000 /dev/zero | tr '\\0' x)\n\
         echo '{{\"credentials\":[{{\"a\":\"'$p-cut-json'\"}}],\"x\":\"'$x'\"}}' | curl -sS {at}/c -d @-"
    );
    let ran = home.exec("web", &format!("({script}) > /dev/null"));
    assert_eq!(ran.code, 0, "{ran}");
    let seen = hosts.seen();
    for text in &planted[..9] {
        assert!(seen.contains(text), "{text} was to arrive: {seen}");
    }
    until("the last record", || {
        let all = home.json(&["requests", "web"]);
        let ended = |request: &&Value| request["protocol"] == "http" && !request["end"].is_null();
        (all.as_array().unwrap().iter().filter(ended).count() == 8).then_some(())
    });
    let all = home.json(&["requests", "web"]);
    let query =
        all.as_array().unwrap().iter().find(|request| request["http"]["path"].to_string().contains("/q"));
    let query = query.unwrap();
    assert_eq!(query["http"]["path"], "/v1/q?page=2&access_token=[redacted]");
    assert!(query["connection"].as_u64().is_some() && query["http"]["status"] == 200, "{query}");
    let shown = home.ok(&["requests", "show", &query["id"].to_string()]);
    assert!(
        shown.contains("GET /v1/q?page=2&access_token=[redacted]") && shown.contains("[redacted]"),
        "{shown}"
    );
    home.ok(&["destroy", "--all", "--yes"]);
    assert_eq!(is_in_files(&home.path(), &planted), None);
    hosts.end(&home);
}

#[test]
fn a_secret_stays_outside_and_reaches_its_host_only() {
    let home = Home::new();
    let mut hosts = Hosts::new(&home);
    let value = "re4l-0123456789abcdef0123456789abcdef";
    let zeno = |words: &[&str]| {
        let mut command = home.command(words);
        finish(command.env("TOKEN", value).spawn().unwrap(), b"")
    };
    let net = "allow:public.test:8443,other.test:8443+inspect,public.test:8080";
    let made =
        zeno(&["create", "--name", "web", "--no-workspace", "--net", net, "--secret", "TOKEN@public.test"]);
    assert_eq!(made.code, 0, "{made}");
    let curl = |words: &str| {
        home.exec("web", &format!("curl -sS --max-time 20 {words} -w ' %{{http_code}}' 2>&1")).out()
    };
    let public = "https://public.test:8443";
    assert!(curl(&format!("{public}/h -H \"Authorization: Bearer $TOKEN\"")).ends_with(" 200"));
    assert!(curl(&format!("{public}/b -u \"ann:$TOKEN\"")).ends_with(" 200"));
    assert!(curl(&format!("--http1.1 \"{public}/q?key=$TOKEN\"")).ends_with(" 200"));
    let seen = hosts.seen();
    assert!(seen.contains(&format!("Bearer {value}")) && seen.contains(&format!("/q?key={value}")), "{seen}");
    // `ann:` and the value, in base64.
    assert!(seen.contains("Basic YW5uOnJlNGwtMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="), "{seen}");
    assert_eq!(
        curl("https://other.test:8443/ -H \"x-token: $TOKEN\""),
        "zeno: the secret `TOKEN` is not meant for `other.test`\n 403"
    );
    assert!(curl("http://public.test:8080/ -H \"x-token: $TOKEN\"").ends_with("it needs TLS\n 403"));
    let environment = home.exec("web", "env; cat /proc/*/environ | tr '\\0' '\\n'").out();
    assert!(environment.contains("TOKEN=") && !environment.contains("re4l-"), "{environment}");
    assert_eq!(home.ok(&["exec", "web", "--", "python3", "-c", SEARCH]), "200 False\n");
    assert_eq!(is_in_files(&home.path(), &[value]), None);

    // The next daemon does not know it, and says how it is told.
    hosts.world.restart(&home);
    let gone = curl(&format!("{public}/h -H \"Authorization: Bearer $TOKEN\""));
    assert!(gone.contains("--secret TOKEN@public.test") && gone.ends_with(" 403"), "{gone}");
    let again = zeno(&["net", "web", "--secret", "TOKEN@public.test"]);
    assert!(again.code == 0 && again.out().contains("TOKEN for public.test"), "{again}");
    assert!(curl(&format!("{public}/h -H \"Authorization: Bearer $TOKEN\"")).ends_with(" 200"));
    assert_eq!(is_in_files(&home.path(), &[value]), None);
    hosts.end(&home);
}

/// What was allowed when it began is cut when it is not allowed any more: what changed its protocol, and what has no answer yet.
#[test]
fn a_request_that_goes_on_is_cut_when_it_is_not_allowed_any_more() {
    let home = Home::new();
    let hosts = Hosts::new(&home);
    let check = |name: &str, words: &[&str], denies: &[&str], path: &str| {
        home.create(name, &["--net", "allow:public.test:8443/v1/*"]);
        let words = [&["exec", name, "--", "python3", "-c"], words].concat();
        let mut going = home.command(&words).spawn().unwrap();
        super::read_line(&mut going, "open\n");
        let requests = || home.json(&["requests", name]).as_array().unwrap().clone();
        until("the request", || {
            requests().iter().any(|request| request["http"]["path"] == path).then_some(())
        });
        // What is not about it leaves it alone: the first of these.
        for deny in denies {
            home.ok(&["net", name, "--deny", deny]);
        }
        assert_eq!(finish(going, b"").out(), "ended\n", "{name}");
        let cut = |request: &Value| {
            let is_cut = request["end"]["error"] == "cut: it is not allowed any more";
            is_cut && request["protocol"] == "http" && request["http"]["path"] == path
        };
        until("the record", || requests().iter().any(cut).then_some(()));
    };
    let socket = [SOCKET, "public.test", "8443", "stay"];
    check("tunnel", &socket, &["POST public.test:8443", "GET public.test:8443/v1/socket"], "/v1/socket");
    check("upload", &[UPLOAD], &["GET public.test:8443", "POST public.test:8443/v1/up"], "/v1/up");
    hosts.end(&home);
}

/// A request whose body never ends.
const UPLOAD: &str = r#"
import socket, ssl
stream = ssl.create_default_context().wrap_socket(socket.create_connection(('public.test', 8443)), server_hostname='public.test')
stream.sendall(b'POST /v1/up HTTP/1.1\r\nHost: public.test:8443\r\nContent-Length: 100\r\n\r\nhalf')
print('open', flush=True)
try: stream.recv(100)
except OSError: pass
print('ended')
"#;

/// Makes a request with the placeholder, and looks for the value in all of its own memory. The pattern is no match of itself.
const SEARCH: &str = r#"
import os, re, urllib.request
request = urllib.request.Request('https://public.test:8443/m', headers={'Authorization': 'Bearer ' + os.environ['TOKEN']})
status = urllib.request.urlopen(request).status
found = False
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:
    for line in maps:
        words = line.split()
        if 'r' in words[1] and '[v' not in line:
            first, last = (int(place, 16) for place in words[0].split('-'))
            try:
                memory.seek(first)
                found |= re.search(b're4l[-][0-9a-f]{32}', memory.read(last - first)) is not None
            except OSError:
                pass
print(status, found)
"#;
