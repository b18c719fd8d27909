//! The gateway, from inside real sandboxes: what may be reached is, and nothing else, and all of it is on record.
//!
//! The world beyond it is a network namespace that the test makes (`outside.py`), and the daemon runs in another, with a
//! wire between the two: whatever address is dialled there is one of theirs, and no packet leaves the machine.

mod across;
mod answers;
mod bypass;
mod clients;
mod e2b;
mod given;
mod hosts_file;
mod inspect;
mod port;
mod proxy;
mod recorded;
mod registries;
mod reload;
mod secrets;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::home::{Home, finish, is_root, program};
use crate::wait::{end, until};

const OUTSIDE: &str = include_str!("outside.py");
const INSIDE: &str = include_str!("inside.py");

/// A namespace with services in it, and a daemon in another that sees nothing else.
struct World {
    services: Child,
    /// A process of the daemon's namespace.
    machine: u32,
    daemon: Child,
    options: Vec<String>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl World {
    fn new(home: &Home) -> Self {
        Self::with(home, &[])
    }

    /// With more options for the daemon.
    fn with(home: &Home, options: &[&str]) -> Self {
        let own: &[&str] = if is_root() { &["-n"] } else { &["--map-current-user", "--keep-caps", "-n"] };
        let mut services = Command::new("unshare")
            .args(own)
            .args(["python3", "-c", OUTSIDE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut lines = BufReader::new(services.stdout.take().unwrap()).lines();
        let ready = lines.next().expect("the services start").unwrap();
        let ready: Value = serde_json::from_str(&ready).unwrap();
        let machine = u32::try_from(ready["daemon"].as_u64().unwrap()).unwrap();
        std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                for line in lines.map_while(Result::ok) {
                    seen.lock().unwrap().push(serde_json::from_str(&line).unwrap());
                }
            }
        });
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let daemon = start_daemon(home, machine, &options);
        Self { services, machine, daemon, options, seen }
    }

    /// A daemon in the place of one that was killed.
    fn start_again(&mut self, home: &Home) {
        end(&mut self.daemon);
        self.daemon = start_daemon(home, self.machine, &self.options);
    }

    /// Stops the daemon and starts another.
    fn restart(&mut self, home: &Home) {
        home.ok(&["daemon", "stop"]);
        self.start_again(home);
    }

    /// A program beside the services.
    fn beside(&self, program: &str) -> Command {
        inside_of(self.services.id(), program)
    }

    /// From now on this name leads there.
    fn lead(&self, name: &str, address: &str) {
        let told = || self.seen().matches("leads").count();
        let before = told();
        let mut pipe = self.services.stdin.as_ref().unwrap();
        pipe.write_all(format!("{name} {address}\n").as_bytes()).unwrap();
        until("the name to lead elsewhere", || (told() > before).then_some(()));
    }

    /// Questions and connections that arrived out there, as text.
    fn seen(&self) -> String {
        self.seen.lock().unwrap().iter().map(|value| format!("{value}\n")).collect()
    }

    /// After the home has stopped the daemon.
    fn end(mut self) {
        drop(self.services.stdin.take());
        end(&mut self.services);
        end(&mut self.daemon);
    }
}

/// A program in the namespaces of another process.
fn inside_of(process: u32, program: impl AsRef<OsStr>) -> Command {
    let enter: &[&str] = if is_root() { &["-n"] } else { &["-U", "--preserve-credentials", "-n"] };
    let mut command = Command::new("nsenter");
    command.args(["-t", &process.to_string()]).args(enter).arg("--").arg(program);
    // As root finds them, whoever we are.
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command
}

fn start_daemon(home: &Home, machine: u32, options: &[String]) -> Child {
    let mut daemon = inside_of(machine, program());
    daemon
        .args(["daemon", "run", "--resolver", "10.77.0.1:5353"])
        .args(options)
        .env("ZENO_HOME", home.path());
    let daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the daemon to answer", || home.daemon());
    daemon
}

/// What came of attempts from inside, a line each.
fn attempts(home: &Home, net: &str, lines: &[&str]) -> String {
    let words = [&["run", "--no-workspace", "--net", net, "--", "python3", "-c", INSIDE], lines].concat();
    let ran = home.zeno(&words);
    assert_eq!(ran.code, 0, "{ran}");
    ran.out()
}

#[track_caller]
fn in_world(test: impl FnOnce(&Home, &mut World)) {
    let home = Home::new();
    let mut world = World::new(&home);
    test(&home, &mut world);
    home.ok(&["destroy", "--all", "--yes"]);
    home.ok(&["daemon", "stop"]);
    world.end();
}

/// Reads so much of what a call says, and expects it to be this.
#[track_caller]
fn read_line(going: &mut Child, expected: &str) {
    let mut first = vec![0; expected.len()];
    going.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(String::from_utf8_lossy(&first), expected);
}

/// Requests on record, the last of them, as `verdict protocol destination rule`.
fn record(home: &Home, options: &[&str]) -> String {
    let all = home.json(&[&["requests"], options].concat());
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |request: &Value| {
        let to = if request["name"].is_null() { text(&request["address"]) } else { text(&request["name"]) };
        let (verdict, protocol, rule) =
            (text(&request["verdict"]), text(&request["protocol"]), text(&request["rule"]));
        format!("{verdict} {protocol} {to} {}: {rule}\n", request["port"])
    };
    // Who is reset while it connects tries the other address of the same name: one attempt, told twice.
    let mut lines: Vec<String> = all.as_array().unwrap().iter().map(line).collect();
    lines.dedup();
    lines.concat()
}

#[test]
fn what_is_allowed_by_name_is_reached_and_the_rest_is_not() {
    in_world(|home, world| {
        let shown = attempts(
            home,
            "allow:public.test:80,*.public.test:443",
            &[
                "tcp public.test 80 GET / HTTP/1.1\\r\\nHost: public.test\\r\\n\\r\\n",
                "tcp www.public.test 443 hello",
                "tcp public.test 443",
                "tcp other.test 80",
                "tcp 93.184.216.34 80",
                "tcp 93.184.216.35 80",
                "tcp 2606:2800:220::1 80",
                "tcp 10.77.0.1 80",
                "tcp 169.254.169.254 80",
                "tcp 127.0.0.1 80",
                "tcp host 80",
                "udp 93.184.216.34 443",
                "udp 2606:2800:220::1 443",
            ],
        );
        insta::assert_snapshot!(shown, @"
        tcp public.test 80 -> HTTP/1.1 200 OK|content-length: 16||93.184.216.34:80
        tcp www.public.test 443 -> seen:hello
        tcp public.test 443 -> ConnectionResetError
        tcp other.test 80 -> gaierror
        tcp 93.184.216.34 80 -> ConnectionResetError
        tcp 93.184.216.35 80 -> ConnectionResetError
        tcp 2606:2800:220::1 80 -> ConnectionResetError
        tcp 10.77.0.1 80 -> ConnectionResetError
        tcp 169.254.169.254 80 -> ConnectionResetError
        tcp 127.0.0.1 80 -> ConnectionRefusedError
        tcp host 80 -> gaierror
        udp 93.184.216.34 443 -> PermissionError
        udp 2606:2800:220::1 443 -> PermissionError
        ");
        insta::assert_snapshot!(record(home, &[]), @"
        allow dns public.test null: public.test:80
        allow tcp public.test 80: public.test:80
        allow dns www.public.test null: *.public.test:443
        allow tcp www.public.test 443: *.public.test:443
        deny tcp public.test 443: nothing allows it
        deny dns other.test null: nothing allows it
        deny tcp 93.184.216.34 80: nothing allows it
        deny tcp 93.184.216.35 80: nothing allows it
        deny tcp 2606:2800:220::1 80: nothing allows it
        deny tcp 10.77.0.1 80: nothing allows it
        deny tcp 169.254.169.254 80: nothing allows it
        deny dns host null: nothing allows it
        deny udp 93.184.216.34 443: only TCP, and questions to the resolver, leave a sandbox
        deny udp 2606:2800:220::1 443: only TCP, and questions to the resolver, leave a sandbox
        ");
        assert!(record(home, &["--denied"]).lines().all(|line| line.starts_with("deny")));
        assert_eq!(record(home, &["--host", "public.test"]).lines().count(), 5);
        let seen = world.seen();
        assert!(!seen.contains("other.test"), "nobody outside hears of a name that is not allowed: {seen}");
        let all = home.json(&["requests"]);
        let first = all.as_array().unwrap().iter().find(|request| request["protocol"] == "tcp").unwrap();
        assert_eq!(
            (&first["process"]["name"], &first["address"]),
            (&"python3".into(), &"93.184.216.34".into())
        );
        assert!(
            first["end"]["sent"].as_u64() > Some(20) && first["end"]["received"].as_u64() > Some(20),
            "{first}"
        );
        let number = first["id"].to_string();
        assert!(home.ok(&["requests", "show", &number]).contains("public.test:80"));
        assert_eq!(home.zeno(&["requests", "show", "999999"]).code, 6);
    });
}

#[test]
fn a_name_never_leads_home_and_never_says_another() {
    in_world(|home, _world| {
        let lines = [
            "tcp home.test 80",
            "tcp metadata.test 80",
            "tcp private.test 80",
            "tcp public.test 80 GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "tcp public.test 443 \\x16\\x03\\x01",
            "txt secret-in-a-name.public.test 53",
            "txt public.test 53",
            "name nowhere.test 0",
        ];
        insta::assert_snapshot!(attempts(home, "allow:home.test,metadata.test,private.test,public.test", &lines), @"
        tcp home.test 80 -> ConnectionResetError
        tcp metadata.test 80 -> ConnectionResetError
        tcp private.test 80 -> ConnectionResetError
        tcp public.test 80 -> ConnectionResetError
        tcp public.test 443 -> ConnectionResetError
        txt secret-in-a-name.public.test 53 -> code 3
        txt public.test 53 -> code 5
        name nowhere.test 0 -> gaierror
        ");
        insta::assert_snapshot!(record(home, &["--denied"]), @"
        deny tcp home.test 80: this machine is reached only as `host`
        deny tcp metadata.test 80: link-local and metadata addresses are reached only if they are named
        deny tcp private.test 80: private addresses are reached only if they are named
        deny tcp public.test 80: it was to reach `public.test` and says `other.test`, which is not allowed
        deny tcp public.test 443: it does not say in time whom it speaks to
        deny dns secret-in-a-name.public.test null: nothing allows it
        deny dns public.test null: TXT is not answered
        deny dns nowhere.test null: nothing allows it
        ");
        let private = attempts(
            home,
            "allow:private.test+private,10.77.0.1:443",
            &["tcp private.test 80 hello", "tcp 10.77.0.1 443 hello", "tcp 10.77.0.1 80 hello"],
        );
        insta::assert_snapshot!(private, @"
        tcp private.test 80 -> seen:hello
        tcp 10.77.0.1 443 -> seen:hello
        tcp 10.77.0.1 80 -> ConnectionResetError
        ");
    });
}

#[test]
fn open_is_everything_public_and_still_on_record() {
    in_world(|home, _world| {
        let lines = [
            "tcp public.test 80 hello",
            "tcp six.test 80 hello",
            "tcp 93.184.216.35 443 hello",
            "tcp 2606:2800:220::1 80 hello",
            "tcp private.test 80",
            "tcp 10.77.0.1 80",
            "tcp host 80",
            "name nowhere.test 0",
            "udp 93.184.216.34 443",
        ];
        insta::assert_snapshot!(attempts(home, "open", &lines), @"
        tcp public.test 80 -> seen:hello
        tcp six.test 80 -> seen:hello
        tcp 93.184.216.35 443 -> seen:hello
        tcp 2606:2800:220::1 80 -> seen:hello
        tcp private.test 80 -> ConnectionResetError
        tcp 10.77.0.1 80 -> ConnectionResetError
        tcp host 80 -> gaierror
        name nowhere.test 0 -> gaierror
        udp 93.184.216.34 443 -> PermissionError
        ");
        insta::assert_snapshot!(record(home, &[]), @"
        allow dns public.test null: open
        allow tcp public.test 80: open
        allow dns six.test null: open
        allow tcp six.test 80: open
        allow tcp 93.184.216.35 443: open
        allow tcp 2606:2800:220::1 80: open
        allow dns private.test null: open
        deny tcp private.test 80: private addresses are reached only if they are named
        deny tcp 10.77.0.1 80: private addresses are reached only if they are named
        deny dns host null: nothing allows it
        allow dns nowhere.test null: open
        deny udp 93.184.216.34 443: only TCP, and questions to the resolver, leave a sandbox
        ");
    });
}

#[test]
fn what_may_be_reached_changes_while_it_runs() {
    in_world(|home, _world| {
        home.create("web", &["--net", "deny"]);
        let reach = || {
            let lines = "tcp public.test 80 hello";
            home.ok(&["exec", "web", "--", "python3", "-c", INSIDE, lines])
        };
        assert_eq!(reach(), "tcp public.test 80 -> gaierror\n");
        assert_eq!(
            home.ok(&["net", "web", "--allow", "public.test"]),
            "allow  public.test\ndeny   everything else\n"
        );
        assert_eq!(reach(), "tcp public.test 80 -> seen:hello\n");
        // A connection that goes on is cut when it is not allowed any more.
        let script = "import socket; c = socket.create_connection(('public.test', 80)); c.sendall(b'x'); c.recv(100)\n\
                      print('open', flush=True)\ntry: print('ended', c.recv(100))\nexcept OSError as e: print(type(e).__name__)";
        let mut going = home.command(&["exec", "web", "--", "python3", "-c", script]).spawn().unwrap();
        let mut first = [0; 5];
        going.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        home.ok(&["net", "web", "--deny", "public.test"]);
        assert_eq!(finish(going, b"").out(), "ConnectionResetError\n");
        assert_eq!(reach(), "tcp public.test 80 -> gaierror\n");
        let cut = home.json(&["requests", "web", "--host", "public.test"]);
        let cut = cut
            .as_array()
            .unwrap()
            .iter()
            .any(|request| request["end"]["error"] == "cut: it is not allowed any more");
        assert!(cut, "{}", record(home, &[]));
        let closed = home.zeno(&["net", "web", "--allow", "not a name"]);
        assert_eq!(closed.code, 2, "{closed}");
        home.create("closed", &[]);
        assert_eq!(home.zeno(&["net", "closed", "--allow", "public.test"]).code, 3);
    });
}

/// Here the daemon dials the machine's own loopback, where the test listens.
#[test]
fn a_service_of_this_machine_is_reached_as_host_also_by_the_next_daemon() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let greeter = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            stream.unwrap().write_all(b"hello").unwrap();
        }
    });
    home.create("web", &["--net", &format!("allow:host:{port}")]);
    let script = format!(
        "import socket, time, os\n\
         to = socket.getaddrinfo('host', {port}, type=socket.SOCK_STREAM)[0][4]\n\
         def get():\n c = socket.create_connection(to); return c.recv(100).decode()\n\
         print(get(), flush=True)\n\
         while not os.path.exists('/tmp/go'): time.sleep(0.05)\n\
         print(get(), flush=True)"
    );
    let command = home.detach("web", &format!("exec python3 -c \"{script}\" > /tmp/said 2>&1"));
    until("the first word", || home.exec("web", "cat /tmp/said").out().contains("hello").then_some(()));
    home.crash();
    // The address it was given before leads there still.
    home.exec("web", "touch /tmp/go");
    until("the second word", || (home.exec("web", "cat /tmp/said").out() == "hello\nhello\n").then_some(()));
    home.ok(&["attach", "web", &command]);
    greeter.join().unwrap();
}
