//! What git allows as the name of a ref, of an object, and of a file that holds objects.

/// The name of an object, in either of git's hashes.
pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// May this stand behind `refs/heads/`? As `git check-ref-format` has it.
pub(super) fn is_ref(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.len() <= LONGEST && !part.starts_with('.') && !part.ends_with(".lock")
    };
    // The last one stands for bytes that are no text.
    let is_letter = |letter: char| !letter.is_control() && !" ~^:?*[\\\u{FFFD}".contains(letter);
    name.split('/').all(is_part)
        && name.chars().all(is_letter)
        && name.len() <= LONGEST_PATH
        && name != "@"
        && !name.ends_with('.')
        && !name.starts_with('-')
        && !["..", "@{"].iter().any(|bad| name.contains(bad))
}

/// Is this the path of a loose object, or of a pack, below `objects`?
pub(super) fn is_object(path: &str) -> bool {
    match path.split_once('/') {
        Some(("pack", name)) => {
            let id = name.strip_prefix("pack-").and_then(|name| name.strip_suffix(".pack"));
            id.is_some_and(is_id)
        }
        Some((folder, name)) => folder.len() == 2 && is_id(&format!("{folder}{name}")),
        None => false,
    }
}

const LONGEST: usize = 200;
const LONGEST_PATH: usize = 1000;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_git_would_take() {
        for good in ["main", "feature/x", "a.b", "ü", "v1.0-rc", "a@b"] {
            assert!(is_ref(good), "{good}");
        }
        let bad = [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            ".a",
            "a/.b",
            "a..b",
            "a.lock",
            "a.lock/b",
            "a b",
            "a\nb",
            "a\x7fb",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "@",
            "a.",
            "-a",
            "..",
            "../../heads/main",
        ];
        for bad in bad {
            assert!(!is_ref(bad), "{bad}");
        }
        assert!(!is_ref(&"a".repeat(201)));
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert!(is_id(id) && !is_id(&id.to_uppercase()) && !is_id(&id[1..]));
        assert!(is_object(&format!("{}/{}", &id[..2], &id[2..])));
        assert!(is_object(&format!("pack/pack-{id}.pack")));
        for bad in
            [&format!("pack/pack-{id}.idx"), "pack/../x", "info/alternates", &format!("0/{}", &id[1..])]
        {
            assert!(!is_object(bad), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// Git itself is asked. It takes some that we do not: control characters beyond ASCII, and long ones.
        #[test]
        fn git_takes_every_name_that_we_take(name in "[a-b./@{}*?~^: \\\\é\u{1}-]{1,8}|[a-z0-9]{1,4}(/[a-z0-9.-]{1,6}){0,3}") {
            let asked = Command::new("git").args(["check-ref-format", &format!("refs/heads/{name}")]).status().unwrap();
            prop_assert_eq!(is_ref(&name), asked.success() && name != "@" && !name.starts_with('-'), "{:?}", name);
        }
    }
}
