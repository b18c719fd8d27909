//! Sockets: with no network there is no way to the host's, whatever the family.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::harness::{Home, answer, eventually, is_root, lines, outside, shared, through};

const SOCKETS: &str = include_str!("payloads/sockets.py");
const FAMILIES: &str = include_str!("payloads/families.py");

#[test]
fn the_hosts_ports_cannot_be_reached() {
    let four = TcpListener::bind("127.0.0.1:0").unwrap();
    let six = TcpListener::bind("[::1]:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let places = [
        format!("tcp=127.0.0.1:{}", four.local_addr().unwrap().port()),
        format!("tcp-any=0.0.0.0:{}", four.local_addr().unwrap().port()),
        format!("tcp6=::1:{}", six.local_addr().unwrap().port()),
        format!("udp={}", datagrams.local_addr().unwrap()),
    ];
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let inside = shared().attack(&[], SOCKETS, &places);
    assert!(inside.iter().all(|line| line.ends_with(": ECONNREFUSED")), "{inside:#?}");

    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 16];
        let (length, from) = datagrams.recv_from(&mut bytes).unwrap();
        datagrams.send_to(&bytes[..length], from).unwrap();
    });
    assert_eq!(through(&outside(SOCKETS, &places)).len(), 4);
    echo.join().unwrap();
}

#[test]
fn there_is_no_route_out() {
    let places = [
        "tcp-metadata=169.254.169.254:80",
        "tcp-world=1.1.1.1:443",
        "tcp-private=10.0.0.1:80",
        "tcp6-world=2606:4700:4700::1111:443",
        "udp-dns=8.8.8.8:53",
        "udp-quic=1.1.1.1:443",
        "udp6-dns=2001:4860:4860::8888:53",
        "name-world=example.com",
    ];
    let inside = shared().attack(&[], SOCKETS, &places);
    assert!(inside.iter().all(|line| line.ends_with(": ENETUNREACH")), "{inside:#?}");
}

/// The programs that codex's suite tries, each on a server of the host's that says its name to whoever comes.
#[test]
fn tools_that_go_out_do_not() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let ssh = "ssh -v -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null";
    let tools = [
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3"),
        format!("curl -sS --http0.9 --noproxy '*' -m 9 http://127.0.0.1:{port}"),
        format!("env -u http_proxy -u HTTP_PROXY wget -nv -T 9 -t 1 -O - http://127.0.0.1:{port}"),
        format!("nc -v -N -w 9 127.0.0.1 {port}"),
        format!("{ssh} -o ConnectTimeout=9 -p {port} 127.0.0.1 true"),
    ];
    let home = shared();
    for tool in &tools {
        let said = home.run(&[], &["bash", "-c", &format!("exec 2>&1; {tool}")]);
        let is_refused = ["refused", "connect to server"].iter().any(|word| said.out.contains(word));
        assert!(said.code != Some(0) && is_refused && !said.out.contains(NAME), "{tool}: {said:?}");
    }
    let visits = std::thread::spawn(move || (0..5).for_each(|_| say_name(&server)));
    for tool in &tools {
        let mut outside = std::process::Command::new("bash");
        let said =
            crate::harness::said(outside.args(["-c", &format!("exec 2>&1; {tool}")]).stdin(Stdio::null()));
        assert!(said.out.contains(NAME), "{tool}: {said:?}");
    }
    visits.join().unwrap();

    let ping = |address: &str| format!("exec 2>&1; ping -n -c 1 -W 9 {address}");
    let said = home.run(&[], &["bash", "-c", &ping("192.0.2.1")]);
    let is_refused = ["unreachable", "not permitted", "denied"].iter().any(|word| said.out.contains(word));
    assert!(said.code != Some(0) && is_refused && !said.out.contains("not found"), "{said:?}");
    if is_root() {
        let said = crate::harness::said(std::process::Command::new("bash").args(["-c", &ping("127.0.0.1")]));
        assert!(said.out.contains("1 received"), "the control: the tool itself works: {said:?}");
    }

    let look_up = |name: &str| home.run(&[], &["getent", "ahosts", name]);
    let world = look_up("example.com");
    assert_eq!((world.code, world.out.as_str()), (Some(2), ""), "{world:?}");
    assert!(look_up("localhost").out.contains("STREAM"), "the control: what needs no network is found");
}

const NAME: &str = "zeno_escape_server";

/// To one visitor, in words that an SSH client understands and the others pass on.
fn say_name(server: &TcpListener) {
    let (mut visitor, _) = server.accept().unwrap();
    visitor.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    write!(visitor, "SSH-2.0-{NAME}\r\n").unwrap();
    visitor.shutdown(Shutdown::Write).unwrap();
    // What they say is taken, lest the connection be reset before they have heard; whether they end in time is theirs.
    match visitor.read_to_end(&mut Vec::new()) {
        Ok(_) | Err(_) => {}
    }
}

#[test]
fn sockets_of_the_host_in_files_and_by_name_cannot_be_reached() {
    let home = shared();
    let name = format!("zeno-escape-{}", std::process::id());
    let abstract_one = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    // As docker.sock, an ssh or gpg agent, the session bus, X11, Wayland, tmux or screen have theirs.
    let mut folders = vec![home.seen().to_owned(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    if is_root() {
        folders.push(PathBuf::from("/run"));
    }
    let listeners: Vec<Listener> = folders.iter().map(|folder| Listener::at(&folder.join(&name))).collect();
    let mut places: Vec<String> =
        listeners.iter().map(|listener| format!("path={}", listener.path.display())).collect();
    places.push(format!("abstract={name}"));
    let daemon = home.store().join("daemon.sock");
    home.is_well();
    places.push(format!("path-daemon={}", daemon.display()));
    let places: Vec<&str> = places.iter().map(String::as_str).collect();

    let inside = home.attack(&[], SOCKETS, &places);
    assert!(through(&inside).is_empty(), "{inside:#?}");
    assert_eq!(answer(&inside, "path-daemon"), "ENOENT");
    assert_eq!(through(&outside(SOCKETS, &places)).len(), places.len());
    drop(abstract_one);
}

#[test]
fn a_fifo_of_the_host_leads_nowhere() {
    let home = shared();
    let path = home.seen().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let place = format!("fifo={}", path.display());
    // Nobody reads on the other side of the sandbox's copy.
    assert_eq!(home.attack(&[], SOCKETS, &[&place]), ["fifo: ENXIO"]);
    assert_eq!(outside(SOCKETS, &[&place]), ["fifo: done"]);
    drop(reader.unwrap());
}

#[test]
fn rare_families_are_closed() {
    let inside = shared().attack(&[], FAMILIES, &[]);
    let (rare, rest) = inside.split_at(10);
    assert!(rare.iter().all(|line| line.ends_with(": EAFNOSUPPORT")), "{rare:#?}");
    let raw = if is_root() { "raw icmp: ENETUNREACH" } else { "raw icmp: EPERM" };
    // A network namespace starts with no group that may send such packets.
    assert_eq!(rest, [raw, "icmp without rights: EACCES", "interfaces: lo"]);
    assert_ne!(answer(&outside(FAMILIES, &[]), "interfaces"), "lo");
}

#[test]
fn what_listens_inside_is_not_on_the_host() {
    let home = shared();
    let sandbox = home.create(&[]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = format!(
        "import socket, time; s = socket.create_server(('0.0.0.0', {})); print('up', flush=True); time.sleep(60)",
        free.port()
    );
    home.must(&["exec", &sandbox, "-d", "--", "/usr/bin/python3", "-c", &listen]);
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", free.port());
    let inside = || home.exec(&sandbox, &["bash", "-c", &connect]).code == Some(0);
    assert!(eventually(inside));
    assert!(TcpStream::connect(free).is_err());
    home.must(&["destroy", &sandbox]);
}

/// A variable that leads to a socket is not handed on.
#[test]
fn variables_that_lead_to_sockets_stay_behind() {
    let home = Home::new();
    let mut command = home.zeno(&["run", "--no-workspace", "--", "env"]);
    let names =
        ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "TMUX"];
    for name in names {
        command.env(name, "/run/somewhere");
    }
    command.env("HARMLESS", "kept");
    let said = lines(&crate::harness::said(&mut command).out);
    assert!(said.contains(&"HARMLESS=kept".to_owned()), "{said:?}");
    assert!(!said.iter().any(|line| line.ends_with("/run/somewhere")), "{said:?}");
}

struct Listener {
    path: PathBuf,
    _socket: UnixListener,
}

impl Listener {
    fn at(path: &Path) -> Self {
        let socket = UnixListener::bind(path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        Self { path: path.to_owned(), _socket: socket }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}
