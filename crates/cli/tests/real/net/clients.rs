//! Programs as they are, with no word to them about a gateway: what is allowed by name they reach, in every protocol.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use tempfile::TempDir;

use super::*;
use rustix::process::{Pid, Signal, kill_process};

/// Says to the same test, started again inside, that it is the client.
const REACH: &str = "ZENO_TEST_REACH";
const WEBSOCKET: &str = include_str!("websocket.py");
const JAVA: &str = include_str!("Client.java");
const GO: &str = include_str!("client.go");

#[test]
fn http_clients_of_six_languages_over_both_families() {
    let own = model::env::variables().into_iter().find(|variable| variable.name == REACH.into());
    if let Some(to) = own {
        return be_a_rust_client(to.value.as_os_str().to_str().unwrap());
    }
    in_world(|home, _world| {
        std::fs::write(home.yard().join("Client.java"), JAVA).unwrap();
        std::fs::write(home.yard().join("client.go"), GO).unwrap();
        build_go(&home.yard());
        home.create("web", &["--net", "allow:public.test:80,six.test:80"]);
        let yard = home.yard().display().to_string();
        // A build below /tmp is not in a sandbox.
        std::fs::copy(std::env::current_exe().unwrap(), home.yard().join("real")).unwrap();
        for (name, answer) in [("public.test", "93.184.216.34:80"), ("six.test", "2606:2800:220::1:80")] {
            let url = format!("http://{name}/");
            let python = format!(
                "python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}\").read().decode())'"
            );
            let node = format!("node -e 'fetch(\"{url}\").then(r => r.text()).then(t => console.log(t))'");
            let test = "net::clients::http_clients_of_six_languages_over_both_families";
            let clients = [
                ("curl", format!("curl -sS4 {url}")),
                ("curl", format!("curl -sS6 {url}")),
                ("python3", python),
                ("node", node),
                ("java", format!("java -XX:TieredStopAtLevel=1 {yard}/Client.java {url}")),
                ("goclient", format!("{yard}/goclient {url}")),
                ("real", format!("{REACH}={name} {yard}/real --exact {test} --nocapture")),
            ];
            for (process, line) in clients {
                let ran = home.exec("web", &line);
                assert!(ran.code == 0 && ran.out().contains(answer), "{line}: {ran}");
                // The last of that name: a client may try the other family first.
                let all = home.json(&["requests", "web", "--host", name]);
                let last = all.as_array().unwrap().last().unwrap();
                let named = last["process"]["name"].as_str().unwrap_or("-");
                assert!(named.starts_with(process), "{line}: {last}");
                assert_eq!((&last["verdict"], &last["port"]), (&"allow".into(), &80.into()), "{last}");
            }
        }
        // The same that work are refused what nobody allowed.
        for line in ["curl -sS http://other.test/", &format!("{yard}/goclient http://other.test/")] {
            assert_ne!(home.exec("web", line).code, 0, "{line}");
        }
        assert!(record(home, &["--denied"]).contains("deny dns other.test"));
    });
}

fn build_go(yard: &Path) {
    let cache = yard.join("go");
    let mut go = Command::new("go");
    go.args(["build", "-o", "goclient", "client.go"]).current_dir(yard);
    go.env("GOCACHE", &cache).env("GOPATH", cache.join("path")).env("HOME", yard).env("CGO_ENABLED", "0");
    let built = go.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::remove_dir_all(cache).unwrap();
}

/// Inside: a program in Rust, with nothing but its standard library.
fn be_a_rust_client(name: &str) {
    let mut connection = std::net::TcpStream::connect((name, 80)).unwrap();
    write!(connection, "GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").unwrap();
    connection.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    std::io::stdout().write_all(answer.as_bytes()).unwrap();
}

#[test]
fn http_2_with_and_without_tls_and_websockets() {
    in_world(|home, world| {
        let yard = home.yard();
        std::fs::write(yard.join("page"), "two").unwrap();
        let at = |name: &str| yard.join(name).display().to_string();
        let words =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
        let mut made = Command::new("openssl");
        made.args(words).args(["-subj", "/CN=public.test", "-addext", "subjectAltName=DNS:public.test"]);
        let made = made.args(["-keyout", &at("key"), "-out", &at("crt")]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let serve = |words: &[&str]| {
            let mut server = world.beside("nghttpd");
            server.args(["-a", "93.184.216.34", "-d", &yard.display().to_string()]).args(words);
            server.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
        };
        let plain = serve(&["--no-tls", "8080"]);
        let secret = serve(&["8443", &at("key"), &at("crt")]);
        home.create("web", &["--net", "allow:public.test"]);
        let version =
            "-sS --retry 20 --retry-connrefused --retry-all-errors --retry-delay 1 -w ' %{http_version}'";
        for (line, expected) in [
            (format!("curl {version} --http2-prior-knowledge http://public.test:8080/page"), "two 2"),
            (format!("curl {version} --http2 --cacert {} https://public.test:8443/page", at("crt")), "two 2"),
            (
                format!("curl {version} -6 --http2 --cacert {} https://public.test:8443/page", at("crt")),
                "two 2",
            ),
            (format!("python3 -c '{WEBSOCKET}' public.test 80"), "echo of hello\n"),
        ] {
            let ran = home.exec("web", &line);
            assert_eq!(ran.out(), expected, "{line}: {ran}");
        }
        let shown = record(home, &[]);
        for expected in [
            "allow tcp public.test 8080: public.test",
            "allow tcp public.test 8443",
            "allow tcp public.test 80:",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        finish_server(plain);
        finish_server(secret);
    });
}

#[test]
fn databases_by_name() {
    in_world(|home, world| {
        let postgres = Postgres::start(world);
        let mut redis = world.beside("redis-server");
        redis.args(["--bind", "93.184.216.40", "--port", "6379", "--save", "", "--protected-mode", "no"]);
        let redis =
            redis.current_dir(home.yard()).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        home.create("web", &["--net", "allow:db.test:5432,cache.test:6379"]);
        let ask = "psql -h db.test -U tester -d postgres -Atc 'select 6 * 7, inet_server_port()'";
        until("PostgreSQL to answer", || (home.exec("web", ask).out() == "42|5432\n").then_some(()));
        until("Redis to answer", || {
            (home.exec("web", "redis-cli -h cache.test ping").out() == "PONG\n").then_some(())
        });
        let stored =
            home.exec("web", "redis-cli -h cache.test set answer 42 && redis-cli -h cache.test get answer");
        assert_eq!(stored.out(), "OK\n42\n");
        // Much of it: what passes through the kernel alone is whole.
        let much = "psql -h db.test -U tester -d postgres -Atc \"select md5(string_agg(md5(n::text), '')) from generate_series(1, 100) n\" -c \"select repeat('x', 20000000)\" | wc -c";
        assert_eq!(home.exec("web", much).out().trim(), "20000034");
        for (name, process) in [("db.test", "psql"), ("cache.test", "redis-cli")] {
            let all = home.json(&["requests", "web", "--host", name]);
            let last = all.as_array().unwrap().last().unwrap();
            assert_eq!(
                (&last["process"]["name"], &last["verdict"]),
                (&process.into(), &"allow".into()),
                "{last}"
            );
        }
        let other = home.exec("web", "redis-cli -h db.test -p 6379 ping");
        assert!(!other.out().contains("PONG"), "{other}");
        assert!(record(home, &["--denied"]).contains("deny tcp db.test 6379: nothing allows it"));
        postgres.stop();
        finish_server(redis);
    });
}

/// A server of the test's own, which root runs as another user: it refuses to be root.
struct Postgres {
    server: Child,
    _folder: TempDir,
}

impl Postgres {
    fn start(world: &World) -> Self {
        let folder = tempfile::Builder::new().prefix("zeno-pg-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = folder.path().join("data").display().to_string();
        let programs =
            std::fs::read_dir("/usr/lib/postgresql").unwrap().next().unwrap().unwrap().path().join("bin");
        let run = |program: &str| {
            let own: Vec<String> = match is_root() {
                true => vec![
                    "setpriv".into(),
                    format!("--reuid={NOBODY}"),
                    format!("--regid={NOBODY}"),
                    "--clear-groups".into(),
                ],
                false => Vec::new(),
            };
            let words: Vec<String> =
                own.into_iter().chain([programs.join(program).display().to_string()]).collect();
            let mut command = world.beside(&words[0]);
            command.args(&words[1..]).current_dir(folder.path()).stdin(Stdio::null());
            command
        };
        let made = run("initdb")
            .args(["-D", &data, "-U", "tester", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let access = folder.path().join("data/pg_hba.conf");
        std::fs::write(access, "host all all all trust\n").unwrap();
        let mut server = run("postgres");
        server.args(["-D", &data, "-h", "93.184.216.40", "-F", "-c", "unix_socket_directories="]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { server, _folder: folder }
    }

    fn stop(self) {
        finish_server(self.server);
    }
}

/// `nobody`.
const NOBODY: u32 = 65534;

/// It is told to end, and does. Not by an interrupt: who is started in the background ignores it.
fn finish_server(mut server: Child) {
    let pid = Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    end(&mut server);
}
