//! The gateway as an HTTP proxy: the same policy, the same record.

use super::{attempts, in_world, record};

#[test]
fn a_proxy_for_tools_that_insist_decides_as_ever() {
    in_world(|home, world| {
        let lines = [
            "tcp zeno.proxy 3128 CONNECT public.test:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 GET http://public.test/x HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT other.test:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 GET http://other.test/ HTTP/1.1\\r\\nHost: public.test\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT public.test:443 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT 10.77.0.1:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT 127.0.0.1:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT host:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 CONNECT 169.254.169.254:80 HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 3128 GET / HTTP/1.1\\r\\n\\r\\n",
            "tcp zeno.proxy 80",
        ];
        let shown = attempts(home, "allow:public.test:80", &lines);
        let status = |line: &str| {
            let (_, said) = line.split_once(" -> ").unwrap();
            said.split('|').next().unwrap().to_owned()
        };
        let statuses: Vec<String> = shown.lines().filter(|line| line.contains(" -> ")).map(status).collect();
        let expected = [
            "HTTP/1.1 200 Connection established",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 400 Bad Request",
            "ConnectionResetError",
        ];
        assert_eq!(statuses, expected, "{shown}");
        insta::assert_snapshot!(record(home, &[]), @"
        allow tcp public.test 80: public.test:80
        deny tcp other.test 80: nothing allows it
        deny tcp public.test 443: nothing allows it
        deny tcp 10.77.0.1 80: nothing allows it
        deny tcp 127.0.0.1 80: nothing allows it
        deny tcp host 80: nothing allows it
        deny tcp 169.254.169.254 80: nothing allows it
        deny tcp zeno.proxy 3128: this is a proxy: ask by CONNECT, or with the whole address (http://...)
        deny tcp zeno.proxy 80: the proxy is at port 3128 only
        ");
        assert!(!world.seen().contains("other.test"), "{}", world.seen());
    });
}

/// A tool's own proxy support, and what is said within a tunnel.
#[test]
fn real_clients_go_through_it_and_a_tunnel_is_listened_to() {
    in_world(|home, _world| {
        let script = "import os, socket, urllib.request\n\
            os.environ['http_proxy'] = 'http://zeno.proxy:3128'\n\
            print(urllib.request.urlopen('http://public.test/').read().decode())\n\
            def tunnel(text):\n c = socket.create_connection(('zeno.proxy', 3128))\n c.sendall(b'CONNECT public.test:80 HTTP/1.1\\r\\n\\r\\n')\n \
            assert b' 200 ' in c.recv(1000)\n c.sendall(text)\n return c.recv(1000)\n\
            print(tunnel(b'hello'))\n\
            try: print(tunnel(b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'))\n\
            except OSError as error: print(type(error).__name__)\n";
        let ran = home.zeno(&[
            "run",
            "--no-workspace",
            "--net",
            "allow:public.test",
            "--",
            "python3",
            "-c",
            script,
        ]);
        assert_eq!(ran.out(), "93.184.216.34:80\nb'seen:hello'\nConnectionResetError\n", "{ran}");
        assert!(record(home, &["--denied"]).contains("says `other.test`"), "{}", record(home, &[]));
    });
}

/// A body that comes after its head is no opening, whatever it begins with, and however long it takes.
#[test]
fn an_upload_passes_whenever_its_body_comes() {
    in_world(|home, world| {
        let ran = home.zeno(&[
            "run",
            "--no-workspace",
            "--net",
            "allow:public.test",
            "--",
            "python3",
            "-c",
            UPLOADS,
        ]);
        assert_eq!(ran.out(), "True\nTrue\nTrue\n", "{ran}");
        assert!(!record(home, &[]).contains("deny"), "{}", record(home, &[]));
        assert!(world.seen().contains("POST / HTTP/1.1"));
    });
}

/// What is sent comes back, with a word before each piece.
const UPLOADS: &str = r#"
import socket, time

def upload(body, pause):
    connection = socket.create_connection(("zeno.proxy", 3128))
    said = b""
    def hear(what):
        nonlocal said
        while what not in said.replace(b"seen:", b""):
            piece = connection.recv(65536)
            assert piece, said
            said += piece
    connection.sendall(b"POST http://public.test/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
    hear(b"Connection: close")
    time.sleep(pause)
    connection.sendall(body)
    hear(body)
    return True

print(upload(b"\x16\x03\x01\x00\x05 not a handshake", 0))
print(upload(b"HEAD / HTTP/1.1", 3))
print(upload(b"x" * 100000, 0))
"#;
