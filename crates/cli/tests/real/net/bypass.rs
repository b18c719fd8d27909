//! Every way around the gateway that is known, tried from inside (`bypass.py`): none leads out, and what could have is on
//! record.
//!
//! What is no attempt to leave is not: a sandbox's own loopback, and sockets that the kernel does not even make.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::*;

const BYPASS: &str = include_str!("bypass.py");
const RESET: &str = "Connection reset by peer";
const NO_NAME: &str = "no such name";
const NOT_PERMITTED: &str = "Operation not permitted";

/// Tries each from inside and expects what came of it.
#[track_caller]
fn check(home: &Home, net: &str, expected: &[(&str, &str)]) {
    let lines: Vec<&str> = expected.iter().map(|(line, _)| *line).collect();
    let words =
        [&["run", "--no-workspace", "--net", net, "--", "python3", "-c", BYPASS], &lines[..]].concat();
    let ran = home.zeno(&words);
    assert_eq!(ran.code, 0, "{ran}");
    let out = ran.out();
    let outcomes = out.lines().map(|line| line.split_once(" -> ").map_or(line, |(_, outcome)| outcome));
    let shown: Vec<(&str, &str)> = lines.iter().copied().zip(outcomes).collect();
    assert_eq!(shown, expected, "{ran}");
}

/// The same where all end alike.
#[track_caller]
fn check_all(home: &Home, net: &str, expected: &str, lines: &[&str]) {
    check(home, net, &lines.iter().map(|line| (*line, expected)).collect::<Vec<_>>());
}

/// All on record from its second entry on: more than is shown at once.
fn from_second(home: &Home) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all.last().map_or(1, |request| request["id"].as_u64().unwrap());
        let page = home.ask("GET", &format!("/v1/requests?after={after}"), b"").json();
        match page.as_array().unwrap().as_slice() {
            [] => return all,
            page => all.extend_from_slice(page),
        }
    }
}

/// Those that were denied, once each, as `protocol destination port`.
fn denied(home: &Home) -> BTreeSet<String> {
    let all = home.json(&["requests", "--denied"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |request: &Value| {
        let to = if request["name"].is_null() { &request["address"] } else { &request["name"] };
        format!("{} {} {}", text(&request["protocol"]), text(to), request["port"])
    };
    all.as_array().unwrap().iter().map(line).collect()
}

#[track_caller]
fn assert_denied(home: &Home, expected: &[&str]) {
    let denied = denied(home);
    for expected in expected {
        assert!(denied.contains(*expected), "{expected} is not on record: {denied:#?}");
    }
}

/// Nobody out there, or at home, was reached.
#[track_caller]
fn assert_nobody_reached(world: &World) {
    assert!(!world.seen().contains("service"), "{}", world.seen());
}

#[test]
fn no_spelling_of_an_address_leads_to_this_machine_or_its_networks() {
    in_world(|home, world| {
        let addresses = [
            ("169.254.169.254", "169.254.169.254"),
            ("2852039166", "169.254.169.254"),
            ("0xa9fea9fe", "169.254.169.254"),
            ("0251.0376.0251.0376", "169.254.169.254"),
            ("0xa9.254.43518", "169.254.169.254"),
            ("::ffff:169.254.169.254", "169.254.169.254"),
            ("::ffff:a9fe:a9fe", "169.254.169.254"),
            ("64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe"),
            ("2002:a9fe:a9fe::1", "2002:a9fe:a9fe::1"),
            ("fd00:ec2::254", "fd00:ec2::254"),
            ("100.100.100.200", "100.100.100.200"),
            ("10.0.0.1", "10.0.0.1"),
            ("10.77.0.1", "10.77.0.1"),
            ("172.16.0.1", "172.16.0.1"),
            ("192.168.1.1", "192.168.1.1"),
            ("100.64.0.1", "100.64.0.1"),
            ("::ffff:10.77.0.1", "10.77.0.1"),
            ("fd78::1", "fd78::1"),
            ("198.18.200.1", "198.18.200.1"),
            // The machine's own, one of them public as it looks.
            ("10.78.0.2", "10.78.0.2"),
            ("fd78::2", "fd78::2"),
            ("93.184.216.99", "93.184.216.99"),
            ("::ffff:93.184.216.99", "93.184.216.99"),
        ];
        let wide = "allow:0.0.0.0/0,::/0,128.0.0.0/1,93.184.216.0/24";
        for net in ["allow:public.test", "open", "allow:*", wide, "allow:0.0.0.0/1:22,127.0.0.0/8,host:1"] {
            let lines: Vec<String> =
                addresses.iter().map(|(written, _)| format!("tcp {written} 80")).collect();
            check_all(home, net, RESET, &lines.iter().map(String::as_str).collect::<Vec<_>>());
            // Its own loopback, where nobody listens.
            let own =
                ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "127.1", "2130706433", "localhost"];
            let own: Vec<String> = own.iter().map(|written| format!("tcp {written} 80")).collect();
            check_all(home, net, "Connection refused", &own.iter().map(String::as_str).collect::<Vec<_>>());
            // The gateway's own sockets, asked directly.
            check_all(home, net, RESET, &["tcp 127.0.0.1 61080", "tcp ::1 61080"]);
        }
        let expected: Vec<String> = addresses.iter().map(|(_, meant)| format!("tcp {meant} 80")).collect();
        assert_denied(home, &expected.iter().map(String::as_str).collect::<Vec<_>>());
        assert_nobody_reached(world);
    });
}

/// Where the same names lead changes between one look-up and the next: what is dialled is what was decided about.
#[test]
fn a_name_that_is_led_home_is_not_followed() {
    in_world(|home, world| {
        home.create("web", &["--net", "allow:rebind.test,own.test,mapped.test"]);
        home.ok(&["net", "web", "--deny", "93.184.216.35"]);
        world.lead("rebind.test", "93.184.216.34");
        let reach = |name: &str| {
            let line = format!("tcp {name} 80");
            home.ok(&["exec", "web", "--", "python3", "-c", BYPASS, &line])
        };
        assert_eq!(reach("rebind.test"), "tcp rebind.test 80 -> seen:ping\n");
        for address in [
            "127.0.0.1",
            "10.77.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "10.78.0.2",
            "93.184.216.99",
            "::1",
            "::ffff:127.0.0.1",
            "fd78::2",
        ] {
            world.lead("rebind.test", address);
            assert_eq!(reach("rebind.test"), format!("tcp rebind.test 80 -> {RESET}\n"), "{address}");
        }
        // A denied address by the other family's spelling, and the machine's own by a name.
        for name in ["own.test", "mapped.test"] {
            assert_eq!(reach(name), format!("tcp {name} 80 -> {RESET}\n"));
        }
        world.lead("rebind.test", "93.184.216.34");
        assert_eq!(reach("rebind.test"), "tcp rebind.test 80 -> seen:ping\n");
        let services = || {
            world
                .seen()
                .lines()
                .filter(|line| line.contains("service"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        until("both visits to be told", || (services().len() >= 2).then_some(()));
        assert!(services().iter().all(|line| line.contains("\"93.184.216.34\"")), "{}", world.seen());
        let rules: BTreeSet<String> = record(home, &["--denied"])
            .lines()
            .filter_map(|line| line.split_once(": ").map(|(_, rule)| rule.to_owned()))
            .collect();
        insta::assert_snapshot!(rules.into_iter().collect::<Vec<_>>().join("\n"), @"
        !93.184.216.35
        link-local and metadata addresses are reached only if they are named
        private addresses are reached only if they are named
        this address is nobody's
        this machine is reached only as `host`
        this machine is reached only as `host`, or by an address that is named
        ");
    });
}

#[test]
fn only_tcp_leaves_and_no_socket_is_above_the_rules() {
    in_world(|home, world| {
        let host = UnixListener::bind_addr(&SocketAddr::from_abstract_name("zeno-bypass").unwrap());
        let udp =
            ["udp 93.184.216.35 443", "udp 2606:2800:220::1 443", "udp 10.77.0.1 5353", "udp 9.9.9.9 123"];
        check_all(home, "open", NOT_PERMITTED, &udp);
        let raw = |root: &'static str| if is_root() { root } else { NOT_PERMITTED };
        check(
            home,
            "open",
            &[
                // ICMP, IGMP, GRE, SCTP, DCCP, UDP-Lite, all by hand; then as the kernel would make them.
                ("raw 1 93.184.216.35", raw(NOT_PERMITTED)),
                ("raw 58 2606:2800:220::1", raw(NOT_PERMITTED)),
                ("raw 47 93.184.216.35", raw(NOT_PERMITTED)),
                ("raw 132 93.184.216.35", raw(NOT_PERMITTED)),
                ("raw 33 93.184.216.35", raw(NOT_PERMITTED)),
                ("raw 136 93.184.216.35", raw(NOT_PERMITTED)),
                ("raw 1 93.184.216.35 2", "Permission denied"),
                // Not of a connection: it comes back to the sandbox's own, and nobody is there.
                ("raw 6 93.184.216.35", raw("sent")),
                // Ethernet, the hypervisor, the kernel's own rings, Bluetooth, SCTP.
                ("sock 17 3 768", "Address family not supported by protocol"),
                ("sock 40", "Address family not supported by protocol"),
                ("sock 44 3", "Address family not supported by protocol"),
                ("sock 31 3 1", "Address family not supported by protocol"),
                ("sock 38 5", "Address family not supported by protocol"),
                ("sock 2 1 132", "Protocol not supported"),
                ("sock 2 6 33", "Socket type not supported"),
                // SO_MARK, SO_BINDTODEVICE, IP_TRANSPARENT, IP_FREEBIND.
                ("option 1 36", raw("seen:ping")),
                ("option 1 25", "seen:ping"),
                ("option 0 19", raw("seen:ping")),
                ("option 0 15", "seen:ping"),
                ("bound 10.77.0.1", "seen:ping"),
                // What listens on this machine, in another namespace of such names.
                ("abstract zeno-bypass", "Connection refused"),
            ],
        );
        let mut expected = vec![
            "udp 93.184.216.35 443",
            "udp 2606:2800:220::1 443",
            "udp 10.77.0.1 5353",
            "udp 9.9.9.9 123",
        ];
        if is_root() {
            expected.extend([
                "icmp 93.184.216.35 null",
                "icmp 2606:2800:220::1 null",
                "other 93.184.216.35 null",
                "other 93.184.216.35 443",
            ]);
        }
        assert_denied(home, &expected);
        // Whatever an option did to a socket, where its connection goes was decided about.
        let options = ["option 1 25", "option 0 15", "bound 10.77.0.1"];
        check_all(home, "deny", RESET, &options);
        assert_denied(home, &["tcp 93.184.216.35 80"]);
        if is_root() {
            check_all(home, "deny", RESET, &["option 0 19"]);
        }
        let seen = world.seen();
        assert!(!seen.contains("93.184.216.99") && !seen.contains("question"), "{seen}");
        drop(host);
    });
}

#[test]
fn the_rules_cannot_be_changed_or_left_from_inside() {
    in_world(|home, world| {
        let network = "0x40000000";
        let steal: Vec<String> = (0..24).map(|number| format!("steal {number}")).collect();
        check_all(home, "deny", NOT_PERMITTED, &steal.iter().map(String::as_str).collect::<Vec<_>>());
        check(
            home,
            "deny",
            &[
                ("rules", NOT_PERMITTED),
                // A route, a device, an address.
                ("netlink 0 24 02000000fe030001000000000800040001000000", NOT_PERMITTED),
                ("netlink 0 16 00000000000000000000000000000000", NOT_PERMITTED),
                ("down lo", NOT_PERMITTED),
                (&format!("unshare {network}"), NOT_PERMITTED),
                ("unshare 0x50000000", NOT_PERMITTED),
                ("enter /proc/self/ns/net", NOT_PERMITTED),
                ("enter /proc/1/ns/net", "Permission denied"),
                ("device /dev/net/tun", "No such file or directory"),
                ("write /proc/sys/net/ipv4/ip_forward 1", "Permission denied"),
                ("write /proc/sys/net/ipv4/conf/lo/route_localnet 1", "Permission denied"),
                ("tcp 93.184.216.35 80", RESET),
            ],
        );
        assert_denied(home, &["tcp 93.184.216.35 80"]);
        assert_nobody_reached(world);
    });
}

#[test]
fn nothing_is_told_in_questions() {
    in_world(|home, world| {
        let long = format!("{}.{}.{}.other.test", "a".repeat(63), "b".repeat(63), "c".repeat(63));
        let asks: Vec<String> = ["16", "10", "255", "15", "33", "65", "252"]
            .iter()
            .map(|kind| format!("ask secret.other.test {kind}"))
            .collect();
        check_all(
            home,
            "allow:public.test",
            "code 3 answers 0",
            &asks.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        check(
            home,
            "allow:public.test",
            &[
                (&format!("ask {long} 1"), "code 3 answers 0"),
                (&format!("ask {long} 16 8.8.8.8 tcp"), "code 3 answers 0"),
                ("ask secret.other.test 1 2606:4700:4700::1111", "code 3 answers 0"),
                ("ask secret.other.test 1 10.77.0.1 tcp", "code 3 answers 0"),
                ("ask public.test 16", "code 5 answers 0"),
                ("ask public.test 10", "code 5 answers 0"),
                ("ask public.test 255", "code 5 answers 0"),
                ("ask public.test 65", "code 0 answers 0"),
                ("ask public.test 1", "code 0 answers 1"),
                // Over TLS, and within HTTPS, to whom nobody allowed.
                ("tcp 9.9.9.9 853", RESET),
                ("tcp 1.1.1.1 443", RESET),
                ("tcp dns.other.test 443", NO_NAME),
            ],
        );
        assert_denied(
            home,
            &[
                "dns secret.other.test null",
                &format!("dns {long} null"),
                "dns public.test null",
                "tcp 9.9.9.9 853",
                "tcp 1.1.1.1 443",
                "dns dns.other.test null",
            ],
        );
        let seen = world.seen();
        assert!(!seen.contains("other.test") && seen.contains("public.test"), "{seen}");
    });
}

#[test]
fn a_name_is_what_it_was_allowed_as() {
    in_world(|home, world| {
        let net = "allow:public.test,*.public.test:443";
        check(
            home,
            net,
            &[
                ("tcp PUBLIC.Test 80", "seen:ping"),
                ("tcp public.test. 80", "seen:ping"),
                ("tcp www.public.test 443", "seen:ping"),
                ("tcp www.public.test 80", RESET),
                ("tcp xpublic.test 80", NO_NAME),
                ("tcp public.test.other.test 80", NO_NAME),
                ("tcp public.tes 80", NO_NAME),
                ("tcp p\u{fc}blic.test 80", NO_NAME),
                ("tcp xn--pblic-kva.test 80", NO_NAME),
                ("ask other.test\u{1}.public.test 1", "code 3 answers 0"),
                ("ask other,test.public.test 1", "code 3 answers 0"),
                ("ask *.public.test 1", "code 3 answers 0"),
            ],
        );
        assert_denied(
            home,
            &[
                "dns xpublic.test null",
                "dns public.test.other.test null",
                "dns xn--pblic-kva.test null",
                "tcp www.public.test 80",
                "dns *.public.test null",
            ],
        );
        let seen = world.seen();
        assert!(!seen.contains("other"), "{seen}");
    });
}

/// A server of many names must not be asked for another. What is said within TLS, or later on the same connection, is not
/// seen here: that takes inspection.
#[test]
fn whom_a_client_speaks_to_is_whom_it_was_allowed_to_reach() {
    in_world(|home, world| {
        let refused = [
            "GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "\\r\\nGET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "get / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "GET\\t/ HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "GET / HTTP/1.1\\r\\n \\r\\nHost: other.test\\r\\n\\r\\n",
            "GET / HTTP/1.1\\r\\nX: y\\rHost: other.test\\r\\n\\r\\n",
            "\\x15\\x03\\x03\\x00\\x02\\x01\\x00\\x16\\x03\\x01",
            "GET / HTTP/1.1\\r\\nHost: public.test\\r\\nHost: other.test\\r\\n\\r\\n",
            "GET / HTTP/1.1\\r\\nHost : other.test\\r\\n\\r\\n",
            "GET http://other.test/ HTTP/1.1\\r\\nHost: public.test\\r\\n\\r\\n",
            "GET / HTTP/1.1\\r\\nHost: other.test#.public.test\\r\\n\\r\\n",
            "GET / HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n\\r\\n",
            // A relay at an allowed name.
            "CONNECT other.test:443 HTTP/1.1\\r\\n\\r\\n",
            "CONNECT 10.77.0.1:22 HTTP/1.1\\r\\nHost: public.test\\r\\n\\r\\n",
            "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n\\r\\n",
        ];
        let lines: Vec<String> = refused.iter().map(|text| format!("tcp public.test 80 {text}")).collect();
        check_all(home, "allow:public.test", RESET, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let filler = format!("X: {}\\r\\n", "y".repeat(40_000));
        check(
            home,
            "allow:public.test",
            &[
                (
                    &format!("tcp public.test 80 GET / HTTP/1.1\\r\\n{filler}Host: other.test\\r\\n\\r\\n"),
                    RESET,
                ),
                ("slow ^public.test^2.5^GET / HTTP/1.1\\r\\n^Host: other.test\\r\\n\\r\\n", RESET),
                ("slow ^public.test^0.3^GE^T / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n", RESET),
                ("hello public.test other.test", RESET),
                ("hello public.test other.test 40000", RESET),
                ("hello public.test other.test#.public.test", RESET),
                // What it was allowed, and what says nothing.
                ("hello public.test public.test", "seen:\u{16}\u{3}"),
                ("hello public.test -", "seen:\u{16}\u{3}"),
                (
                    "tcp public.test 443 GET / HTTP/1.1\\r\\nHost: Public.Test.:443\\r\\n\\r\\n",
                    "HTTP/1.1 200 OK|content-length: 17||93.184.216.34:443",
                ),
            ],
        );
        let seen = world.seen();
        for whole in ["Host: other", "Host : other", "CONNECT", "http://", "get /"] {
            assert!(!seen.contains(whole), "{whole}: {seen}");
        }
        let rules = record(home, &["--denied"]);
        for said in [
            "says `other.test`, which is not allowed",
            "says `169.254.169.254`",
            "does not say clearly",
            "does not say in time",
        ] {
            assert!(rules.contains(said), "{said}: {rules}");
        }
    });
}

/// Whose requests are looked at is not reached by saying its name elsewhere, where nobody would look.
#[test]
fn methods_and_paths_hold_whichever_way_a_name_is_said() {
    in_world(|home, world| {
        let host = "DELETE / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n";
        let by_name = format!("tcp public.test 80 {host}");
        let by_address = format!("tcp 93.184.216.35 80 {host}");
        let net = "allow:GET other.test,public.test,93.184.216.35";
        check(
            home,
            net,
            &[
                (&by_name, RESET),
                (&by_address, RESET),
                ("hello public.test other.test", RESET),
                ("hello 93.184.216.35 other.test", RESET),
                ("hello public.test public.test", "seen:\u{16}\u{3}"),
                ("hello 93.184.216.35 third.test", "seen:\u{16}\u{3}"),
            ],
        );
        let rules = record(home, &["--denied"]);
        assert_eq!(rules.matches("whose requests are looked at: reach it by its name").count(), 4, "{rules}");
        // An address whose requests are looked at does not make those of a name its own.
        check_all(home, "allow:GET other.test,93.184.216.35+inspect", RESET, &[&by_address]);
        assert!(!world.seen().contains("DELETE"), "{}", world.seen());
    });
}

#[test]
fn the_first_thing_a_command_does_is_decided_about() {
    in_world(|home, world| {
        let script = "exec 3<>/dev/tcp/93.184.216.34/80 && printf ping >&3 && head -c 9 <&3; echo\n\
                      { exec 3<>/dev/tcp/93.184.216.35/80 && printf ping >&3 && head -c 9 <&3; } 2>/dev/null || echo refused";
        let one = || {
            home.ok(&["run", "--no-workspace", "--net", "allow:93.184.216.34:80", "--", "bash", "-c", script])
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..5).map(|_| scope.spawn(|| (0..10).map(|_| one()).collect::<Vec<_>>())).collect();
            for said in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
                assert_eq!(said, "seen:ping\nrefused\n");
            }
        });
        assert!(!world.seen().contains("93.184.216.35"));
        let all = home.json(&["requests"]);
        let verdicts = |verdict: &str| {
            all.as_array().unwrap().iter().filter(|request| request["verdict"] == verdict).count()
        };
        assert_eq!((verdicts("allow"), verdicts("deny")), (50, 50));
    });
}

#[test]
fn what_is_tried_while_no_daemon_is_there_waits_for_one() {
    in_world(|home, world| {
        home.create("web", &["--net", "allow:93.184.216.34:80"]);
        // That its connection breaks tells it that the daemon is gone.
        let script = "import socket\n\
                      def get(to):\n\
                      \x20try:\n\
                      \x20 c = socket.create_connection((to, 80), timeout=60); c.sendall(b'ping'); return c, c.recv(9).decode()\n\
                      \x20except OSError as e: return None, type(e).__name__\n\
                      c, said = get('93.184.216.34'); print(said, flush=True)\n\
                      try: c.recv(1)\n\
                      except OSError: pass\n\
                      print(get('93.184.216.35')[1], get('93.184.216.34')[1], flush=True)";
        let command = home.detach("web", &format!("exec python3 -c \"{script}\" > /tmp/said 2>&1"));
        until("the first word", || home.exec("web", "cat /tmp/said").out().contains("seen").then_some(()));
        home.crash();
        world.start_again(home);
        home.ok(&["attach", "web", &command]);
        assert_eq!(home.exec("web", "cat /tmp/said").out(), "seen:ping\nConnectionResetError seen:ping\n");
        assert_denied(home, &["tcp 93.184.216.35 80"]);
    });
}

/// Also one that carries much: what passes through the kernel alone is cut, too.
#[test]
fn a_connection_in_full_flow_is_cut_when_it_is_not_allowed_any_more() {
    in_world(|home, _world| {
        home.create("web", &["--net", "allow:public.test"]);
        let script = "import socket, threading\n\
                      c = socket.create_connection(('public.test', 80)); block = bytes(1 << 20)\n\
                      def read():\n\
                      \x20total = 0\n\
                      \x20try:\n\
                      \x20 while True:\n\
                      \x20  got = len(c.recv(1 << 20)); total += got\n\
                      \x20  if total > 1 << 24 and total - got <= 1 << 24: print('flows', flush=True)\n\
                      \x20  if not got: return\n\
                      \x20except OSError: pass\n\
                      threading.Thread(target=read).start()\n\
                      try:\n\
                      \x20for _ in range(1 << 20): c.sendall(block)\n\
                      except OSError as e: print(type(e).__name__)";
        let mut going = home.command(&["exec", "web", "--", "python3", "-c", script]).spawn().unwrap();
        let mut first = [0; 6];
        going.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        home.ok(&["net", "web", "--deny", "public.test"]);
        let said = finish(going, b"").out();
        assert!(["ConnectionResetError\n", "BrokenPipeError\n"].contains(&said.as_str()), "{said}");
        let cut = home.json(&["requests", "web", "--host", "public.test"]);
        let cut = cut
            .as_array()
            .unwrap()
            .iter()
            .find(|request| request["end"]["error"] == "cut: it is not allowed any more");
        let end = &cut.expect("it is on record")["end"];
        assert!(end["sent"].as_u64() >= Some(1 << 24) && end["received"].as_u64() >= Some(1 << 24), "{end}");
    });
}

#[test]
fn a_flood_of_what_is_refused_harms_nobody() {
    in_world(|home, world| {
        home.create("web", &["--net", "allow:public.test"]);
        let reach = |line: &str| home.ok(&["exec", "web", "--", "python3", "-c", BYPASS, line]);
        assert_eq!(reach("tcp public.test 80"), "tcp public.test 80 -> seen:ping\n");
        let daemon = home.daemon().unwrap();
        let descriptors = || std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count();
        let before = descriptors();
        assert_eq!(reach("flood 1000"), "flood 1000 -> 3000 refused\n");
        assert_eq!(reach("tcp public.test 80"), "tcp public.test 80 -> seen:ping\n");
        until("its descriptors to be closed", || (descriptors() <= before + 8).then_some(()));
        let is_denied = |request: &&Value| request["verdict"] == "deny";
        let count = |all: &[Value], protocol: &str| {
            all.iter().filter(is_denied).filter(|request| request["protocol"] == protocol).count()
        };
        let left_out = |request: &Value| {
            request["rule"].as_str()?.split_once(" more attempts were refused")?.0.parse::<usize>().ok()
        };
        let all = until("every name to be told, or at least counted", || {
            let all = from_second(home);
            let counted: usize = all.iter().filter_map(left_out).sum();
            (count(&all, "dns") + counted >= 1000).then_some(all)
        });
        let of = |protocol: &str| count(&all, protocol);
        assert_eq!(of("tcp"), 1000);
        assert!(
            (1..=1000).contains(&of("udp")) && (1..=2000).contains(&of("dns")),
            "{} {}",
            of("udp"),
            of("dns")
        );
        assert!(!world.seen().contains("other.test"));
    });
}
