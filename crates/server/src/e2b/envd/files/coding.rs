//! Gzip, which clients may ask for and send.

use std::io::{self, Write};
use std::pin::Pin;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use futures_util::{Stream, StreamExt, stream};
use model::{Code, Problem};

use crate::e2b::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
}

impl Coding {
    /// How an answer is to be coded. HTTP libraries offer gzip among others without being told to, and to compress for a client
    /// on the same machine costs more than it saves: only whoever wants nothing but gzip gets it.
    pub(super) fn wanted(headers: &HeaderMap) -> Result<Self, Failure> {
        let Some(text) = headers.get(ACCEPT_ENCODING).map(|value| value.to_str().unwrap_or("")) else {
            return Ok(Self::Plain);
        };
        let codings: Vec<(&str, bool)> =
            text.split(',').map(accepted).filter(|(name, _)| !name.is_empty()).collect();
        let takes = |wanted: &str| {
            let named = codings.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.or_else(|| codings.iter().find(|(name, _)| *name == "*")).map(|(_, taken)| *taken)
        };
        match (&codings[..], takes("identity"), takes("gzip")) {
            ([(name, true)], _, _) if name.eq_ignore_ascii_case("gzip") => Ok(Self::Gzip),
            (_, None | Some(true), _) => Ok(Self::Plain),
            (_, Some(false), Some(true)) => Ok(Self::Gzip),
            (_, Some(false), None | Some(false)) => {
                Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "files come as they are, or as gzip"))
            }
        }
    }

    /// How a request is coded.
    pub(super) fn sent(headers: &HeaderMap) -> Result<Self, Failure> {
        match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"" | b"identity") => Ok(Self::Plain),
            Some(b"gzip" | b"x-gzip") => Ok(Self::Gzip),
            Some(_) => Err(Failure::bad_request("a body comes as it is, or as gzip")),
        }
    }
}

/// `gzip;q=0.5`: a name, and whether it is taken at all.
fn accepted(text: &str) -> (&str, bool) {
    let (name, weight) = text.split_once(';').unwrap_or((text, ""));
    let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
    (name.trim(), weight.is_none_or(|weight| weight > 0.0))
}

/// What a client gets as gzip.
pub(super) fn gzipped(
    contents: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    stream::unfold(Some((Box::pin(contents), encoder)), |state| async move {
        let (mut contents, mut encoder) = state?;
        loop {
            let piece = match contents.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(problem)) => return Some((Err(problem), None)),
                None => {
                    return Some((encoder.finish().map(Bytes::from).map_err(|error| broken(&error)), None));
                }
            };
            if let Err(error) = encoder.write_all(&piece) {
                return Some((Err(broken(&error)), None));
            }
            let coded = std::mem::take(encoder.get_mut());
            if !coded.is_empty() {
                return Some((Ok(Bytes::from(coded)), Some((contents, encoder))));
            }
        }
    })
}

/// What a client sent as gzip, in pieces that stay small whatever it unfolds to.
pub(super) fn unzipped<'a>(
    contents: impl Stream<Item = Result<Bytes, Problem>> + Send + 'a,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'a {
    let unzip =
        Unzip { contents: Box::pin(contents), decoder: MultiGzDecoder::new(Vec::new()), piece: Bytes::new() };
    stream::unfold(Some(unzip), |unzip| async move {
        let mut unzip = unzip?;
        match unzip.next().await {
            Ok(Some(plain)) => Some((Ok(plain), Some(unzip))),
            Ok(None) => {
                // The decoder says here whether that was the end.
                let last = unzip.decoder.finish().map(Bytes::from).map_err(|error| broken(&error));
                Some((last, None))
            }
            Err(problem) => Some((Err(problem), None)),
        }
    })
}

struct Unzip<'a> {
    contents: Pin<Box<dyn Stream<Item = Result<Bytes, Problem>> + Send + 'a>>,
    decoder: MultiGzDecoder<Vec<u8>>,
    /// What was not decoded yet.
    piece: Bytes,
}

impl Unzip<'_> {
    /// None when all has been given to the decoder.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            while !self.piece.is_empty() {
                let bite = self.piece.split_to(self.piece.len().min(BITE));
                self.decoder.write_all(bite.chunk()).map_err(|error| broken(&error))?;
                let plain = std::mem::take(self.decoder.get_mut());
                if !plain.is_empty() {
                    return Ok(Some(Bytes::from(plain)));
                }
            }
            match self.contents.next().await {
                Some(piece) => self.piece = piece?,
                None => return Ok(None),
            }
        }
    }
}

fn broken(error: &io::Error) -> Problem {
    Problem::from_error(Code::BadRequest, error)
}

/// Of these bytes gzip makes 4 MiB at most.
const BITE: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(text: &str) -> Option<Coding> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, text.parse().unwrap());
        Coding::wanted(&headers).ok()
    }

    #[test]
    fn only_whoever_wants_nothing_else_gets_gzip() {
        assert_eq!(Coding::wanted(&HeaderMap::new()).unwrap(), Coding::Plain);
        for text in ["", "gzip, deflate", "gzip, deflate, br, zstd", "identity", "*", "br", "gzip;q=0"] {
            assert_eq!(wanted(text), Some(Coding::Plain), "{text}");
        }
        for text in ["gzip", "gzip;q=0.5", "gzip, identity;q=0", "*;q=0, gzip", "GZIP"] {
            assert_eq!(wanted(text), Some(Coding::Gzip), "{text}");
        }
        for text in ["identity;q=0", "*;q=0", "br, *;q=0"] {
            assert_eq!(wanted(text), None, "{text}");
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    async fn whole(contents: impl Stream<Item = Result<Bytes, Problem>>) -> Result<Vec<u8>, Problem> {
        let pieces: Vec<_> = contents.collect().await;
        let mut all = Vec::new();
        for piece in pieces {
            all.extend(piece?);
        }
        Ok(all)
    }

    fn pieces(bytes: &[u8], size: usize) -> Vec<Result<Bytes, Problem>> {
        bytes.chunks(size.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()
    }

    #[test]
    fn a_bomb_comes_in_small_pieces() {
        let zeros = vec![0; 64 << 20];
        let coded = run(whole(gzipped(stream::iter(pieces(&zeros, 1 << 20))))).unwrap();
        let unfolded = run(unzipped(stream::iter(pieces(&coded, coded.len()))).collect::<Vec<_>>());
        let sizes: Vec<usize> = unfolded.into_iter().map(|piece| piece.unwrap().len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), zeros.len());
        assert!(sizes.iter().all(|size| *size <= 5 << 20), "{sizes:?}");
    }

    #[test]
    fn a_torn_one_is_no_whole() {
        let coded = run(whole(gzipped(stream::iter(pieces(b"some text that is not long", 5))))).unwrap();
        for length in 0..coded.len() {
            assert!(run(whole(unzipped(stream::iter(pieces(&coded[..length], 7))))).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_zipped_is_unzipped(bytes in prop::collection::vec(any::<u8>(), 0..5000), size in 1_usize..700) {
            let coded = run(whole(gzipped(stream::iter(pieces(&bytes, size))))).unwrap();
            prop_assert_eq!(run(whole(unzipped(stream::iter(pieces(&coded, size))))).unwrap(), bytes);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..500), size in 1_usize..50) {
            run(async { unzipped(stream::iter(pieces(&bytes, size))).for_each(async |_| ()).await });
        }
    }
}
