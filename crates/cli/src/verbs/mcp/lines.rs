//! Lines of bounded length, of whatever bytes.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), is_too_long: false }
    }

    /// The next line; `None` at the end. Safe to cancel: what is read of a line is kept.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.reader.fill_buf().await?;
            if piece.is_empty() {
                let is_end = self.line.is_empty() && !self.is_too_long;
                return Ok((!is_end).then(|| self.take()));
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            if self.line.len() + part.len() > server::MCP_LONGEST {
                self.is_too_long = true;
                self.line = Vec::new();
            } else if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let consumed = end.map_or(piece.len(), |end| end + 1);
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) { Line::TooLong } else { Line::Whole(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Vec<Line> {
        let (mut lines, mut all) = (Lines::new(bytes), Vec::new());
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_whole_and_one_without_end_is_not_held() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(read(b"one\n\ntwo").await, [whole("one"), whole(""), whole("two")]);
        let giant = [vec![b'x'; server::MCP_LONGEST + 1], b"\nnext\n".to_vec()].concat();
        assert_eq!(read(&giant).await, [Line::TooLong, whole("next")]);
        assert_eq!(read(b"").await, []);
    }
}
