//! A form (`multipart/form-data`) with one file or several, stored as they come.
//!
//! The parser takes from its source whatever there is before it looks at it, and waits for the end of a part's head however
//! long that is. Here it is given one piece at a time, and only so many as long as it is not in the middle of a file.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, stream};
use model::files::Entry;
use model::{Code, Problem};
use multer::{Field, Multipart};

use super::upload::{Incoming, Upload};
use crate::e2b::envd::inside;
use crate::e2b::failure::Failure;

pub(super) async fn store(
    upload: Upload<'_>,
    contents: Incoming<'_>,
    boundary: String,
) -> Result<Vec<Entry>, Failure> {
    let mut form = Form::new(contents, boundary);
    let (mut stored, mut names) = (Vec::new(), Vec::<String>::new());
    while let Some(field) = form.next_file().await? {
        let name =
            upload.path.or_else(|| field.file_name()).map(str::to_owned).ok_or_else(|| {
                Failure::bad_request("a file in the form has no name, and there is no `path`")
            })?;
        if names.contains(&name) {
            let text = format!("`{name}` is twice in one request; only the first was stored");
            return Err(Failure::bad_request(text));
        }
        let path = inside::path(&name)?;
        names.push(name);
        stored.push(upload.files.store(path, upload.metadata.clone(), chunks(field)).await?);
    }
    Ok(stored)
}

struct Form<'a> {
    parts: Multipart<'a>,
    room: Room,
    seen: usize,
}

impl<'a> Form<'a> {
    fn new(contents: Incoming<'a>, boundary: String) -> Self {
        let room = Room::default();
        let parts = Multipart::new(Measured { contents, room: room.clone(), is_due: false }, boundary);
        Self { parts, room, seen: 0 }
    }

    /// Other fields are passed over, as E2B's daemon does.
    async fn next_file(&mut self) -> Result<Option<Field<'a>>, Problem> {
        loop {
            self.seen += 1;
            if self.seen > MOST_PARTS {
                return Err(Problem::new(Code::BadRequest, format!("a form has at most {MOST_PARTS} parts")));
            }
            self.room.give(LONGEST_HEAD);
            let Some(mut field) = self.parts.next_field().await.map_err(problem)? else { return Ok(None) };
            self.room.give(usize::MAX);
            if field.name() == Some("file") {
                return Ok(Some(field));
            }
            while field.chunk().await.map_err(problem)?.is_some() {}
        }
    }
}

fn chunks(field: Field<'_>) -> impl Stream<Item = Result<Bytes, Problem>> {
    stream::unfold(Some(field), |field| async move {
        let mut field = field?;
        match field.chunk().await {
            Ok(None) => None,
            Ok(Some(chunk)) => Some((Ok(chunk), Some(field))),
            Err(error) => Some((Err(problem(error)), None)),
        }
    })
}

fn problem(error: multer::Error) -> Problem {
    match error {
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<Problem>() {
            Ok(problem) => *problem,
            Err(cause) => Problem::from_error(Code::BadRequest, &*cause),
        },
        other => Problem::from_error(Code::BadRequest, &other),
    }
}

/// How many bytes the parser may still be given.
#[derive(Clone, Debug, Default)]
struct Room(Arc<AtomicUsize>);

impl Room {
    fn give(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// `false`: there was none before.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        if left != usize::MAX {
            self.0.store(left.saturating_sub(bytes), Ordering::Relaxed);
        }
        left > 0
    }
}

struct Measured<'a> {
    contents: Incoming<'a>,
    room: Room,
    /// A piece was given, and is to be looked at before there is another.
    is_due: bool,
}

impl Stream for Measured<'_> {
    type Item = Result<Bytes, Problem>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_due) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = std::task::ready!(self.contents.as_mut().poll_next(context));
        Poll::Ready(next.map(|piece| {
            let piece = piece?;
            self.is_due = true;
            if self.room.take(piece.len()) {
                Ok(piece)
            } else {
                Err(Problem::new(Code::BadRequest, "the head of a part in the form is too long"))
            }
        }))
    }
}

const MOST_PARTS: usize = 10_000;
/// A head is a name with a path; what comes in one piece with it is not counted.
const LONGEST_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use proptest::prelude::*;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
            tokio::time::timeout(std::time::Duration::from_secs(60), future).await.expect("it takes too long")
        })
    }

    fn incoming(bytes: &[u8], size: usize) -> Incoming<'static> {
        let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        Box::pin(stream::iter(pieces))
    }

    type File = (Option<String>, Vec<u8>);

    async fn files(contents: Incoming<'static>, boundary: &str) -> Result<Vec<File>, Problem> {
        let mut form = Form::new(contents, boundary.to_owned());
        let mut files = Vec::new();
        while let Some(field) = form.next_file().await? {
            let name = field.file_name().map(str::to_owned);
            let mut whole = Vec::new();
            let mut chunks = Box::pin(chunks(field));
            while let Some(chunk) = chunks.next().await {
                whole.extend(chunk?);
            }
            files.push((name, whole));
        }
        Ok(files)
    }

    /// As the SDKs write it.
    fn written(files: &[(String, Vec<u8>)], boundary: &str) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, contents) in files {
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            );
            body.extend(head.as_bytes());
            body.extend(contents);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{boundary}--\r\n").as_bytes());
        body
    }

    #[test]
    fn other_fields_are_passed_over() {
        let body = b"--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--b\r\n\
            Content-Disposition: form-data; name=\"file\"; filename=\"/a/\xc3\xa9 b\"\r\n\r\n\r\n--b--\r\n";
        let found = run(files(incoming(body, 7), "b")).unwrap();
        assert_eq!(found, [(Some("/a/é b".to_owned()), Vec::new())]);
    }

    #[test]
    fn a_head_without_end_is_not_waited_for() {
        let given = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&given);
        let endless = stream::repeat_with(move || {
            counted.fetch_add(1024, Ordering::Relaxed);
            Ok(Bytes::from_static(&[b'x'; 1024]))
        });
        let begin = stream::iter([Ok(Bytes::from_static(b"--b\r\nX: "))]);
        assert!(run(files(Box::pin(begin.chain(endless)), "b")).is_err());
        assert!(given.load(Ordering::Relaxed) <= LONGEST_HEAD + 2048);
        // Neither is a form that never begins.
        let nothing = stream::repeat_with(|| Ok(Bytes::from_static(&[b'-'; 1024])));
        assert!(run(files(Box::pin(nothing), "b")).is_err());
    }

    #[test]
    fn a_file_is_not_gathered() {
        let held = Arc::new(AtomicUsize::new(0));
        let given = Arc::clone(&held);
        let head = Bytes::from_static(
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n",
        );
        let pieces = stream::repeat_with(move || {
            given.fetch_add(1 << 16, Ordering::Relaxed);
            Ok(Bytes::from_static(&[b'y'; 1 << 16]))
        });
        run(async {
            let contents: Incoming<'static> = Box::pin(stream::iter([Ok(head)]).chain(pieces));
            let mut form = Form::new(contents, "b".to_owned());
            let mut chunks = Box::pin(chunks(form.next_file().await.unwrap().unwrap()));
            for _ in 0..200 {
                let taken = chunks.next().await.unwrap().unwrap().len();
                assert!(held.fetch_sub(taken, Ordering::Relaxed) <= 4 << 16);
            }
        });
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            files_in in prop::collection::vec(("[a-z/~. é]{1,20}", prop::collection::vec(prop_oneof![
                Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'b'), any::<u8>()], 0..300)), 0..5),
            size in 1_usize..400,
        ) {
            let boundary = "bb-no-contents-have-it-0123456789";
            let body = written(&files_in, boundary);
            let expected: Vec<File> = files_in.into_iter().map(|(name, contents)| (Some(name), contents)).collect();
            prop_assert_eq!(run(files(incoming(&body, size), boundary)).unwrap(), expected);
        }

        #[test]
        fn a_torn_form_is_an_error(contents in prop::collection::vec(any::<u8>(), 0..100), cut in 1_usize..60, size in 1_usize..50) {
            let body = written(&[("a".to_owned(), contents)], "boundary-0123456789");
            let torn = &body[..body.len().saturating_sub(cut + 4)];
            prop_assert!(run(files(incoming(torn, size), "boundary-0123456789")).is_err());
        }

        #[test]
        fn any_bytes_end(pieces in prop::collection::vec(prop_oneof![
            Just(b"--b".to_vec()), Just(b"\r\n".to_vec()), Just(b"--b--".to_vec()),
            Just(b"Content-Disposition: form-data; name=\"file\"; filename=\"".to_vec()),
            prop::collection::vec(any::<u8>(), 0..20)], 0..40), size in 1_usize..30)
        {
            let body = pieces.concat();
            // Whatever it says, it says it.
            drop(run(files(incoming(&body, size), "b")));
        }
    }
}
