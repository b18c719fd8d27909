//! Ports of sandboxes, from this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, finish};
use crate::wait::until;

/// Answers with its name and what it was sent.
pub(super) fn serve(home: &Home, name: &str, port: u16) {
    let script = format!(
        "import socket; s = socket.create_server((\\\"127.0.0.1\\\", {port}))\n\
         while True:\n c, _ = s.accept(); c.sendall(b\\\"{name}:\\\" + c.recv(100)); c.close()"
    );
    home.detach(name, &format!("exec python3 -c \"{script}\""));
}

/// What is said there to `hello`. None: nobody is there.
fn ask(to: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.write_all(b"hello").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said).filter(|said| !said.is_empty())
}

fn open(home: &Home, words: &[&str]) -> SocketAddr {
    let port = home.json(&[&["port", "-d"], words].concat());
    let number = u16::try_from(port["host_port"].as_u64().unwrap()).unwrap();
    SocketAddr::new(port["address"].as_str().unwrap().parse().unwrap(), number)
}

#[test]
fn many_sandboxes_listen_on_one_port_and_each_is_reached() {
    let home = Home::new();
    let nets = ["none", "deny", "none"];
    let mut reached = Vec::new();
    for (name, net) in ["a", "b", "c"].into_iter().zip(nets) {
        home.create(name, &["--net", net]);
        let to = open(&home, &[name, "3000"]);
        assert!(to.ip().is_loopback());
        // Nobody listens inside yet.
        assert_eq!(ask(to), None);
        serve(&home, name, 3000);
        reached.push((name, to));
    }
    for (name, to) in &reached {
        assert_eq!(until("an answer", || ask(*to)), format!("{name}:hello"));
    }
    let shown = home.ok(&["ports"]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(home.ok(&["ports", "b"]).ends_with(" -> b:3000\n"));
    // Made anew, a sandbox has other processes; the way to the old ones is gone with them.
    home.ok(&["stop", "a"]);
    until("the end of the way", || {
        (ask(reached[0].1).is_none() && home.ok(&["ports", "a"]).is_empty()).then_some(())
    });
    assert_eq!(home.zeno(&["port", "-d", "a", "3000"]).code, 3);
}

#[test]
fn a_port_is_refused_where_it_cannot_be_had_and_ends_with_ctrl_c() {
    let home = Home::new();
    home.create("web", &[]);
    serve(&home, "web", 3000);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = taken.local_addr().unwrap().port();
    let refused = home.zeno(&["port", "-d", "web", &format!("3000:{number}")]);
    assert_eq!(refused.code, 5, "{refused}");
    assert_eq!(home.zeno(&["port", "web", "0"]).code, 2);
    home.create("open", &["--net", "host"]);
    assert_eq!(home.zeno(&["port", "-d", "open", "3000"]).code, 3);
    drop(taken);
    let mut going = home.command(&["port", "web", &format!("3000:{number}")]).spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(going.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, format!("127.0.0.1:{number} -> web:3000\n"));
    let to = SocketAddr::from(([127, 0, 0, 1], number));
    assert_eq!(until("an answer", || ask(to)), "web:hello");
    kill_process(Pid::from_child(&going), Signal::INT).unwrap();
    assert_eq!(finish(going, b"").code, 0);
    assert_eq!(ask(to), None);
    assert_eq!(home.ask("DELETE", "/v1/sandboxes/web/ports/3000", b"").status, 404);
}
