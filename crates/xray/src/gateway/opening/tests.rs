use proptest::prelude::*;

use super::*;

/// A client hello as a client sends it, with a name and another extension before it.
fn hello(name: &str) -> Vec<u8> {
    hello_of(&[name])
}

/// The same with so many names in its list.
fn hello_of(names: &[&str]) -> Vec<u8> {
    let counted = |bytes: Vec<u8>, width: usize| [&bytes.len().to_be_bytes()[8 - width..], &bytes].concat();
    let names = names.iter().flat_map(|name| [vec![0], counted(name.as_bytes().to_vec(), 2)].concat());
    let names = counted(names.collect(), 2);
    let extensions = [vec![0, 23], counted(Vec::new(), 2), vec![0, 0], counted(names, 2)].concat();
    let body = [
        vec![3; 34],
        counted(vec![7; 32], 1),
        counted(vec![1, 2], 2),
        counted(vec![0], 1),
        counted(extensions, 2),
    ];
    let message = [vec![1], counted(body.concat(), 3)].concat();
    message.chunks(100).flat_map(|piece| [vec![22, 3, 1], counted(piece.to_vec(), 2)].concat()).collect()
}

fn is_for(name: &str) -> Opening {
    Opening::For(name.to_owned())
}

#[test]
fn the_server_of_a_tls_client() {
    let bytes = hello("Example.ORG");
    assert_eq!(read(&bytes), is_for("example.org"));
    for length in 1..bytes.len() {
        assert_eq!(read(&bytes[..length]), Opening::Unfinished, "{length}");
    }
    assert_eq!(read(b"\x16\x02rubbish"), Opening::Silent);
}

#[test]
fn a_hello_comes_first_and_names_one() {
    assert_eq!(read(&hello_of(&["a.org", "b.org"])), Opening::Unclear);
    for kind in [20, 21, 23, 24] {
        let before = [vec![kind, 3, 3, 0, 1, 1], hello("b.org")].concat();
        assert_eq!(read(&before[..1]), Opening::Unfinished, "{kind}");
        assert_eq!(read(&before), Opening::Unclear, "{kind}");
        // Between two records of the hello.
        let whole = hello("a-name-that-needs-two-records.example.org");
        let first = 5 + 100;
        let between = [&whole[..first], &[kind, 3, 3, 0, 1, 1], &whole[first..]].concat();
        assert_eq!(read(&between), Opening::Unclear, "{kind}");
        assert_eq!(read(&[kind, 0, 1]), Opening::Silent, "{kind}");
    }
    assert_eq!(read(b"\x16\x03\x01\0\x04\0\0\0\0"), Opening::Unclear);
}

#[track_caller]
fn check(text: &str, expected: Opening) {
    assert_eq!((text, read(text.as_bytes())), (text, expected));
}

#[test]
fn the_host_of_a_request() {
    check("GET / HTTP/1.1\r\nAccept: */*\r\nhOsT: Example.org:8080\r\n\r\n", is_for("example.org"));
    check("GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n", is_for("1.2.3.4"));
    check("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", is_for("::1"));
    check("GET / HTTP/1.1\r\nHost:\r\n\r\n", Opening::Silent);
    check("GET / HTTP/1.0\r\n\r\nHost: x\r\n", Opening::Silent);
    check("GE", Opening::Unknown);
    check("GET / HTT", Opening::Unfinished);
    check("GET / HTTP/1.1\r\nHost: exa", Opening::Unfinished);
    check("GET / HTTP/1.1\r\nHost: example.org\r\n", Opening::Unfinished);
    // Others, which speak first, too.
    check("EHLO me\r\n", Opening::Silent);
    check("*1\r\n$4\r\nPING\r\n", Opening::Silent);
    check("SSH-2.0-OpenSSH_9.2\r\n", Opening::Silent);
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Opening::Silent);
    check("\0\0\0\x08\x04", Opening::Silent);
    check(&"x".repeat(100), Opening::Silent);
}

#[test]
fn what_a_lenient_server_takes_for_a_request_is_one() {
    check("\r\n\nGET / HTTP/1.1\r\nHost: a.org\r\n\r\n", is_for("a.org"));
    check("get / HTTP/1.1\nhost : a.org\n\n", is_for("a.org"));
    check("\r\n", Opening::Unknown);
    check("GET\t/\tHTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
    check("GET\t/ HTT", Opening::Unfinished);
    check(" \tGET / HTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
    check("GET / HTTP/01.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
    check("GET / http/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
    check("CONNECT\tb.org:443\tHTTP/1.1\r\n\r\n", is_for("b.org"));
}

/// Python's server reads on after a line of blanks, and takes a bare carriage return for the end of a line.
#[test]
fn what_ends_a_line_or_a_head_for_some_is_unclear() {
    check("GET / HTTP/1.1\r\n \r\nHost: b.org\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nHost: a.org\r\n\t\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nHost: a.org\r\n\r\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nX: y\rHost: b.org\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\rHost: b.org\r\n\r\n", Opening::Unclear);
}

#[test]
fn whoever_is_to_ask_another_is_asked_for_that_one() {
    check("CONNECT b.org:443 HTTP/1.1\r\n\r\n", is_for("b.org"));
    check("CONNECT 10.0.0.1:22 HTTP/1.1\r\n\r\n", is_for("10.0.0.1"));
    check("GET http://me@b.org:80/x HTTP/1.1\r\nHost: b.org\r\n\r\n", is_for("b.org"));
    check("GET http://b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", Opening::Unclear);
}

#[test]
fn two_names_are_none() {
    check("GET / HTTP/1.1\r\nHost: a.org\r\nHost: b.org\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nHost: a.org\r\nHost: a.org\r\n\r\n", is_for("a.org"));
    check("GET / HTTP/1.1\r\nHost:\r\n b.org\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nHost: b.org#.a.org\r\n\r\n", Opening::Unclear);
    check("GET / HTTP/1.1\r\nHost: a.org, b.org\r\n\r\n", Opening::Unclear);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, first in prop::sample::select(vec![22_u8, b'G', 0])) {
        read(&bytes);
        read(&[&[first][..], &bytes].concat());
    }

    #[test]
    fn a_hello_with_anything_changed_is_survived(place in 0_usize..200, value: u8) {
        let mut bytes = hello("example.org");
        let place = place % bytes.len();
        bytes[place] = value;
        read(&bytes);
    }
}
