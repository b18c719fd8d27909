//! HTTP/1.1 by hand on one kept-alive connection, so that a round trip costs what the server makes it cost.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::RigError;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    pub(crate) fn open(socket: &Path) -> Result<Self, RigError> {
        let stream = UnixStream::connect(socket)
            .map_err(|source| RigError::Connect { socket: socket.to_owned(), source })?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn socket(&self) -> &UnixStream {
        self.stream.get_ref()
    }

    /// Sends a request and reads the whole answer; any status but 2xx is an error.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>, RigError> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).map_err(RigError::Talk)?;
        let status = self.status()?;
        let length = self.length(status)?;
        let answer = match length {
            Length::Bytes(count) => self.bytes(count)?,
            Length::Chunks => self.chunks()?,
        };
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        Err(RigError::Refused {
            method: method.to_owned(),
            path: path.to_owned(),
            status,
            body: String::from_utf8_lossy(&answer).into_owned(),
        })
    }

    fn status(&mut self) -> Result<u16, RigError> {
        let line = self.line()?;
        let code = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        code.ok_or(RigError::NotHttp { line })
    }

    fn length(&mut self, status: u16) -> Result<Length, RigError> {
        let mut length = if status == 204 { Some(Length::Bytes(0)) } else { None };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return length.ok_or(RigError::NotHttp { line: "no length".to_owned() });
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", count) => match count.parse() {
                    Ok(count) => length = Some(Length::Bytes(count)),
                    Err(_) => return Err(RigError::NotHttp { line }),
                },
                ("transfer-encoding", "chunked") => length = Some(Length::Chunks),
                _ => {}
            }
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, RigError> {
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16);
            let Ok(size) = size else { return Err(RigError::NotHttp { line }) };
            all.extend(self.bytes(size)?);
            self.line()?;
            if size == 0 {
                return Ok(all);
            }
        }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, RigError> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).map_err(RigError::Talk)?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String, RigError> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(RigError::Talk)?;
        if line.is_empty() {
            return Err(RigError::Talk(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(line.trim_end().to_owned())
    }
}

enum Length {
    Bytes(usize),
    Chunks,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// A server that answers each request on one connection with the next text.
    fn served(answers: &'static [&'static str]) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let mut head = vec![0; 4096];
                assert!(stream.read(&mut head).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (folder, Connection::open(&socket).unwrap())
    }

    #[test]
    fn answers_by_length_and_by_chunks_on_one_connection() {
        let (_folder, mut connection) = served(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ]);
        assert_eq!(connection.send("GET", "/", "").unwrap(), b"hi");
        assert_eq!(connection.send("POST", "/", "{}").unwrap(), b"abcde");
        assert_eq!(connection.send("DELETE", "/", "").unwrap(), b"");
    }

    #[test]
    fn a_refusal_carries_its_body() {
        let (_folder, mut connection) = served(&["HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone"]);
        let error = connection.send("GET", "/x", "").unwrap_err();
        assert!(matches!(error, RigError::Refused { status: 404, body, .. } if body == "gone"));
    }
}
