//! HTTP by hand: what any client in any language would see.

use std::io::{BufRead, BufReader, Read, Write};

use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: BufReader<S>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request and reads the whole answer.
    #[track_caller]
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut response = self.open(method, path, headers, body);
        while let Some(piece) = self.piece(&response) {
            response.body.extend(piece);
            if response.header("content-length").is_some() {
                break;
            }
        }
        response
    }

    /// Sends a request and reads the head of its answer.
    #[track_caller]
    pub(crate) fn open(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut request = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += "host: localhost\r\n";
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let stream = self.stream.get_mut();
        // In one piece: a server that refuses by the head alone may close before the body comes.
        stream.write_all(&[request.as_bytes(), b"\r\n", body].concat()).unwrap();
        let status = self.line();
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Response { status: status.unwrap(), headers, body: Vec::new() }
    }

    /// The next piece of the body as the server sent it; none at its end.
    pub(crate) fn piece(&mut self, response: &Response) -> Option<Vec<u8>> {
        if let Some(length) = response.header("content-length") {
            return Some(self.bytes(length.parse().unwrap()));
        }
        if response.header("transfer-encoding") != Some("chunked") {
            return None;
        }
        let length = usize::from_str_radix(&self.line(), 16).unwrap();
        let piece = self.bytes(length);
        self.line();
        (length > 0).then_some(piece)
    }

    /// Pieces until one of them, with those before it, holds this text.
    #[track_caller]
    pub(crate) fn read_until(&mut self, response: &Response, text: &str) -> String {
        let mut all = String::new();
        while !all.contains(text) {
            let Some(piece) = self.piece(response) else { panic!("ended before {text:?}: {all}") };
            all += std::str::from_utf8(&piece).unwrap();
        }
        all
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end_matches("\r\n").to_owned()
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// A body of one JSON value per line.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A path as a query's value, every byte spelled out.
pub(crate) fn encoded(path: &[u8]) -> String {
    path.iter().map(|byte| format!("%{byte:02x}")).collect()
}
