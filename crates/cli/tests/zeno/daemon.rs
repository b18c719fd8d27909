//! The daemon's side of the socket, in the hands of a test.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use model::exec::{FrameHead, FrameKind};
use serde::Serialize;
use tempfile::TempDir;

/// Listens in a home of its own and hands every request but `/healthz` to the test.
pub(crate) struct Daemon<T> {
    home: TempDir,
    thread: JoinHandle<T>,
}

pub(crate) struct Request {
    /// `POST /v1/run`.
    pub(crate) line: String,
    pub(crate) body: Vec<u8>,
}

impl<T: Send + 'static> Daemon<T> {
    /// Takes the requests of one client; ends with what `script` makes of the first.
    pub(crate) fn start(script: impl FnOnce(Request, Wire) -> T + Send + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(home.path().join("daemon.sock")).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut wire = Wire(stream);
            loop {
                let request = wire.request();
                if request.line == "GET /healthz" {
                    wire.answer(200, br#"{"version":"99.0.0","pid":1}"#);
                } else {
                    return script(request, wire);
                }
            }
        });
        Self { home, thread }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// What the script ended with. Its failed assertions fail the test.
    pub(crate) fn end(self) -> T {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Answers any number of requests on any number of connections, each by itself, for as long as the test runs.
/// What was asked is kept.
pub(crate) struct Answering {
    home: TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    pub(crate) fn start(answer: impl Fn(&Request, &mut Wire) + Send + Sync + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(home.path().join("daemon.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut wire, log, answer) = (Wire(stream.unwrap()), log.clone(), answer.clone());
                std::thread::spawn(move || {
                    while wire.has_more() {
                        let request = wire.request();
                        if request.line == "GET /healthz" {
                            wire.answer(200, br#"{"version":"99.0.0","pid":1}"#);
                            continue;
                        }
                        let body = String::from_utf8_lossy(&request.body).into_owned();
                        log.lock().unwrap().push(format!("{} {body}", request.line).trim().to_owned());
                        answer(&request, &mut wire);
                    }
                });
            }
        });
        Self { home, asked }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// All requests, sorted: a folder has no order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

pub(crate) struct Wire(UnixStream);

impl Wire {
    /// False when the client closed the connection.
    fn has_more(&self) -> bool {
        rustix::net::recv(&self.0, &mut [0; 1], rustix::net::RecvFlags::PEEK)
            .is_ok_and(|(_, length)| length > 0)
    }

    fn request(&mut self) -> Request {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body).unwrap();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = self.chunks();
        }
        let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        Request { line, body }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut size = Vec::new();
            while !size.ends_with(b"\r\n") {
                let mut byte = [0];
                self.0.read_exact(&mut byte).unwrap();
                size.push(byte[0]);
            }
            let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.0.read_exact(&mut chunk).unwrap();
            body.extend(&chunk[..size]);
            if size == 0 {
                return body;
            }
        }
    }

    pub(crate) fn answer(&mut self, status: u16, body: &[u8]) {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        self.0.write_all(&[head.as_bytes(), body].concat()).unwrap();
    }

    /// From here on, lines, until the connection ends.
    pub(crate) fn begin_lines(&mut self) {
        self.0.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n").unwrap();
    }

    pub(crate) fn line(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).unwrap() + "\n";
        self.0.write_all(line.as_bytes()).unwrap();
    }

    /// From here on, frames.
    pub(crate) fn upgrade(&mut self) {
        let head = "HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: zeno-frames/1\r\n\r\n";
        self.0.write_all(head.as_bytes()).unwrap();
    }

    pub(crate) fn say(&mut self, kind: FrameKind, payload: &[u8]) {
        assert!(self.try_say(kind, payload), "the client is gone");
    }

    /// False when the client is gone.
    pub(crate) fn try_say(&mut self, kind: FrameKind, payload: &[u8]) -> bool {
        let head = FrameHead { kind, length: u32::try_from(payload.len()).unwrap() };
        self.0.write_all(&[&head.encode(), payload].concat()).is_ok()
    }

    pub(crate) fn tell(&mut self, kind: FrameKind, value: &impl Serialize) {
        self.say(kind, &serde_json::to_vec(value).unwrap());
    }

    /// What the client says next; `None` when it left.
    pub(crate) fn hear(&mut self) -> Option<(FrameKind, Vec<u8>)> {
        let mut head = [0; FrameHead::SIZE];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("the client neither spoke nor left: {error}"),
        }
        let head = FrameHead::decode(head).unwrap();
        let mut payload = vec![0; head.length as usize];
        self.0.read_exact(&mut payload).unwrap();
        Some((head.kind, payload))
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
