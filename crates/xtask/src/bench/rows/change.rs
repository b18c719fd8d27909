//! What is changed before it is sealed, taken back or compared: scripts that do the same in a sandbox and outside.

/// In a repository of at least that many files: every other one is changed, and as many are new.
pub(super) fn files(count: usize) -> String {
    let line = |at: usize| {
        let (folder, file) = (at / 100, at % 100);
        let name = if at.is_multiple_of(2) { "file" } else { "new" };
        format!("echo changed >part{folder:04}/{name}{file:03}.txt\n")
    };
    (0..count).map(line).collect()
}

/// One new file of that many bytes.
pub(super) fn one_file(bytes: u64) -> String {
    format!("head -c {bytes} /dev/zero >big")
}

/// That many bytes as files of 1 MiB.
pub(super) fn files_of_a_mebibyte(bytes: u64) -> String {
    format!("mkdir big && head -c {bytes} /dev/zero | split -b 1M -a 4 - big/")
}

/// That many new files of one line, a thousand in a folder.
pub(super) fn new_files(count: usize) -> String {
    format!(
        "for folder in $(seq {}); do mkdir new$folder && seq 1000 | split -l 1 -a 3 - new$folder/; done",
        count / 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_changes_another_file() {
        let script = files(1000);
        let names: std::collections::BTreeSet<_> = script.lines().collect();
        assert_eq!(names.len(), 1000);
        assert!(names.contains("echo changed >part0000/file000.txt"));
        assert!(names.contains("echo changed >part0009/new099.txt"));
    }
}
