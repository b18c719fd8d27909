//! Names in a patch.

/// The prefix and the path, in quotes and with escapes where git could misread it otherwise.
pub(super) fn quoted(prefix: &str, path: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if path.iter().all(is_plain) {
        return path.iter().fold(prefix.to_owned(), |text, byte| text + &char::from(*byte).to_string());
    }
    let mut text = format!("\"{prefix}");
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text += &format!("\\{byte:03o}"),
        }
    }
    text + "\""
}
