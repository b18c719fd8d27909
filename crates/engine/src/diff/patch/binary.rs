//! Git's form of a binary patch: both contents, deflated, in a base 85 of its own.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Writes what is there now and, so that the patch can be taken back, what was there.
pub(super) fn write(before: &[u8], after: &[u8], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "GIT binary patch")?;
    literal(after, out)?;
    literal(before, out)
}

fn literal(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "literal {}", bytes.len())?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    for line in encoder.finish()?.chunks(LINE) {
        let length = line.len() as u8;
        // `A` to `Z` for 1 to 26 bytes, `a` to `z` for 27 to 52.
        let mark = if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 };
        out.write_all(&[mark])?;
        for word in line.chunks(4) {
            let mut padded = [0; 4];
            padded[..word.len()].copy_from_slice(word);
            out.write_all(&digits(u32::from_be_bytes(padded)))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn digits(mut word: u32) -> [u8; 5] {
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(word % 85) as usize];
        word /= 85;
    }
    digits
}

const LINE: usize = 52;
const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
