//! A fault in a project with tests of its own, and three fixes of it: which one is right is found out by running them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::home::{Home, finish};
use crate::yard::git;

/// A program in Python that works out sums.
const PROJECT: [(&str, &str); 11] = [
    (".gitignore", "__pycache__/\n"),
    ("README.md", include_str!("payloads/sums/README.md")),
    ("sums/__init__.py", include_str!("payloads/sums/sums/__init__.py")),
    ("sums/__main__.py", include_str!("payloads/sums/sums/__main__.py")),
    ("sums/evaluator.py", include_str!("payloads/sums/sums/evaluator.py")),
    ("sums/lexer.py", include_str!("payloads/sums/sums/lexer.py")),
    ("sums/parser.py", include_str!("payloads/sums/sums/parser.py")),
    ("tests/__init__.py", ""),
    ("tests/test_lexer.py", include_str!("payloads/sums/tests/test_lexer.py")),
    ("tests/test_parser.py", include_str!("payloads/sums/tests/test_parser.py")),
    ("tests/test_sums.py", include_str!("payloads/sums/tests/test_sums.py")),
];

const LOOP: &str = "        while self.sees(signs):
            sign = self.next()[1]
            left = (sign, left, below())
        return left
";
/// Reads a row from the right: `10 - 2 - 3` becomes 11.
const FAULT: &str = "        if self.sees(signs):
            sign = self.next()[1]
            return (sign, left, self.binary(signs, below))
        return left
";
const CHECK: &str = "python3 -m unittest";

#[test]
fn the_right_fix_becomes_real_the_others_are_explained_by_their_failing_tests_and_undo_takes_it_back() {
    let home = Home::new();
    let project = Project::new(&home);
    let broken = project.test();
    assert!(!broken.status.success() && said(&broken).contains("FAIL: test_differences"), "{broken:?}");

    // One turns the difference round, one has a slip in something else, one is right.
    let patch = format!("loop=patch:{}", project.right().display());
    project.branch(
        "fix/quotients",
        &[("sums/parser.py", FAULT, LOOP), ("sums/evaluator.py", "left / right", "left // right")],
    );
    let swap = "swap=sed -i 's/left - right/right - left/' sums/evaluator.py";
    let race = home
        .command(&["race", "--json", "--promote", "yes", "--check", CHECK, "--try", swap])
        .args(["--candidate", &patch, "--candidate", "ref:fix/quotients"])
        .current_dir(&project.path)
        .spawn();
    let ran = finish(race.unwrap(), b"");
    assert_eq!(ran.code, 0, "{ran}");
    let race: Value = serde_json::from_str(&ran.out()).unwrap();

    let entries = race["entries"].as_array().unwrap();
    let fates: Vec<_> = entries.iter().map(fate).collect();
    // What the fault broke, and what the fix broke besides.
    let failed =
        ["test_a_row_is_read_from_the_left", "test_brackets", "test_differences", "test_one_difference"];
    let failed = failed.map(str::to_owned);
    let quotients = "test_quotients_are_exact".to_owned();
    assert_eq!(fates[0], ("swap", "fail", [&failed[..], std::slice::from_ref(&quotients)].concat()), "{ran}");
    assert_eq!(fates[1], ("loop", "pass", vec![]), "{ran}");
    let failed = vec!["test_it_prints_the_value".to_owned(), quotients];
    assert_eq!(fates[2], ("fix-quotients", "fail", failed), "{ran}");
    for (entry, told) in
        [(&entries[0], "Fraction(7, 1) != Fraction(7, 4)"), (&entries[2], "1 != Fraction(7, 4)")]
    {
        assert!(entry["lost"].as_str().unwrap().contains("FAILED (failures="), "{entry}");
        let tail = entry["tail"].to_string();
        assert!(tail.contains("in test_quotients_are_exact") && tail.contains(told), "{entry}");
    }
    assert_eq!(entries[1].get("lost"), None);
    assert_eq!(race["winner"], "loop");
    assert_eq!(race["promoted"]["promotion"]["verdict"], race["entries"][1]["verdict"], "{ran}");

    assert!(project.test().status.success(), "what became real passes here, too");
    assert_eq!(
        git(&project.path, &["diff", "--stat", "--numstat"]).lines().next(),
        Some("2\t2\tsums/parser.py")
    );
    assert_eq!(git(&project.path, &["status", "--porcelain"]), " M sums/parser.py\n");
    home.ok(&["undo"]);
    assert_eq!(git(&project.path, &["status", "--porcelain"]), "");
    assert_eq!(project.test().status.code(), broken.status.code());
    assert_eq!(home.json(&["races"])[0]["winner"], json!("loop"));
}

/// Name, outcome, and the tests that failed as the log of its check has it.
fn fate(entry: &Value) -> (&str, &str, Vec<String>) {
    let log = entry["log"].as_str().map(|log| fs::read_to_string(log).unwrap()).unwrap_or_default();
    let failed = log.lines().filter_map(|line| line.strip_prefix("FAIL: ")?.split(' ').next());
    (entry["name"].as_str().unwrap(), entry["outcome"].as_str().unwrap(), failed.map(str::to_owned).collect())
}

struct Project {
    path: PathBuf,
    beside: PathBuf,
}

impl Project {
    /// As it was, and then with the fault.
    fn new(home: &Home) -> Self {
        let project = Self { path: home.yard().join("sums"), beside: home.yard() };
        for (name, text) in PROJECT {
            let file = project.path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        git(&project.path, &["init", "-q", "-b", "main"]);
        git(&project.path, &["add", "-A"]);
        git(&project.path, &["commit", "-qm", "Work out sums"]);
        assert!(project.test().status.success(), "{}", said(&project.test()));
        replace(&project.path.join("sums/parser.py"), LOOP, FAULT);
        git(&project.path, &["commit", "-qam", "Read rows without a loop"]);
        project
    }

    fn test(&self) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", CHECK]).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&self.path);
        command.output().unwrap()
    }

    /// The right fix, as a patch in a file.
    fn right(&self) -> PathBuf {
        let file = self.beside.join("loop.diff");
        fs::write(&file, git(&self.path, &["diff", "HEAD", "HEAD^"])).unwrap();
        file
    }

    fn branch(&self, name: &str, edits: &[(&str, &str, &str)]) {
        git(&self.path, &["checkout", "-qb", name]);
        for (file, from, to) in edits {
            replace(&self.path.join(file), from, to);
        }
        git(&self.path, &["commit", "-qam", "Fix it"]);
        git(&self.path, &["checkout", "-q", "main"]);
    }
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from} in {}", file.display());
    fs::write(file, text.replace(from, to)).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
