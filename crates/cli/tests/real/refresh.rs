//! A sandbox that is behind, brought up to date.

use std::fs;

use crate::home::{Home, is_root};
use crate::yard::Yard;

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";

#[test]
fn what_it_changed_is_laid_over_the_present() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec("box", INSIDE);
    yard.script(
        "sed -i s/^six/SIX/ lines; echo new > fresh; mkdir -p more/deep; echo here > more/deep/file; rm old; \
         chmod 755 run; git add -A; git commit -qm outside",
    );
    let status = home.json(&["status", "box"]);
    let overlap = &status["freshness"]["overlap"];
    assert_eq!(overlap["paths"], serde_json::json!(["lines"]), "{status}");
    assert!(home.ok(&["status", "box"]).contains("\nof these the sandbox has changed, too\n  lines\n"));

    let planned = home.json(&["refresh", "box", "--dry-run"]);
    assert_eq!(planned["status"], "planned", "{planned}");
    assert_eq!(home.exec("box", "cat fresh").code, 1, "a dry run does nothing");
    let done = home.json(&["refresh", "box"]);
    assert_eq!(done["status"], "done", "{done}");

    let merged = LINES.replace("six", "SIX").replace("one", "ONE");
    let see = "cat lines fresh more/deep/file built/cache/object kept/inside moved/a /tmp/mine; ls; git log --format=%s";
    let seen = home.exec("box", see);
    assert_eq!(
        seen.out(),
        format!(
            "{merged}new\nhere\nobject\nadded\na\nmine\nbuilt\nfresh\nkept\nlines\nlink\nmore\nmoved\nrun\noutside\nfirst\n"
        ),
        "{seen}"
    );
    assert_eq!(home.exec("box", "stat -c %a run; readlink link").out(), "755\nlines\n");
    // Its changes are its own, and nothing else.
    let diff = home.json(&["diff", "box"]);
    let changes = diff["workspace"].as_array().unwrap().iter().filter(|change| change["ignored"] != true);
    let changed: Vec<&str> = changes.map(|change| change["path"].as_str().unwrap()).collect();
    assert_eq!(changed, ["dir", "dropped", "kept/inside", "lines", "link", "moved", "moved/a"], "{diff}");
    let again = home.json(&["refresh", "box"]);
    assert_eq!(again["status"], "current", "{again}");
    assert_eq!(home.json(&["status", "box"])["freshness"]["behind_total"], 0);

    // What it was before is not lost.
    home.ok(&["rollback", "box", done["before"].as_str().unwrap()]);
    assert_eq!(home.exec("box", "cat lines; cat fresh").out(), LINES.replace("one", "ONE"));
}

const INSIDE: &str = "sed -i s/^one/ONE/ lines; rm dropped; echo added > kept/inside; ln -s lines link; mv dir moved; \
    mkdir -p built/cache; echo object > built/cache/object; echo mine > /tmp/mine; git status";

#[test]
fn both_sides_changed_the_same_line() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec("box", "echo inside > lines; rm old; mkdir new; echo inside > new/file");
    yard.script(
        "echo outside > lines; echo more >> old; mkdir new; echo outside > new/file; echo other > other",
    );
    let refused = home.zeno(&["refresh", "box"]);
    assert_eq!(refused.code, 5, "{refused}");
    for path in ["lines", "old", "new/file"] {
        assert!(refused.out().contains(&format!("conflict {path}\n")), "{refused}");
    }
    assert!(refused.out().ends_with("the sandbox is as it was\n"), "{refused}");
    assert_eq!(home.exec("box", "cat lines other").out(), "inside\n");

    home.ok(&["refresh", "box", "--on-conflict", "ours", "--on-conflict", "lines=theirs"]);
    let seen = home.exec("box", "cat lines other new/file; ls old");
    assert_eq!(seen.out(), "outside\nother\ninside\n", "{seen}");
    assert!(seen.err().contains("No such file"), "{seen}");
}

#[test]
fn commits_are_not_lost_on_either_side() {
    let home = Home::new();
    let yard = yard(&home);
    let commit = |what: &str| format!("echo {what} > {what}; git add -A; git commit -qm {what}");
    home.exec("box", &commit("inside"));
    yard.script("echo loose > loose");
    home.ok(&["refresh", "box"]);
    assert_eq!(
        home.exec("box", "git log --format=%s; cat loose; git status --short").out(),
        "inside\nfirst\nloose\n?? loose\n"
    );

    yard.script(&commit("outside"));
    let refused = home.zeno(&["refresh", "box"]);
    assert_eq!(refused.code, 5, "both moved the same branch: {refused}");
    assert!(refused.out().contains("conflict .git/refs/heads/"), "{refused}");
    home.ok(&["refresh", "box", "--on-conflict", "theirs"]);
    let seen = home.exec("box", "git log --format=%s; git status --short; git fsck --no-dangling");
    assert_eq!(seen.out(), "outside\nfirst\n?? inside\n", "{seen}");
}

#[test]
fn git_s_files_are_those_of_the_side_that_moved_on() {
    let home = Home::new();
    let yard = yard(&home);
    // Inside something is staged and tagged, outside is committed: the next commit inside must not revert that.
    home.exec("box", "echo staged > lines; git add lines; git tag v1; git gc -q");
    yard.script("echo fresh > fresh; git add -A; git commit -qm outside; echo loose > loose; git add loose");
    home.ok(&["refresh", "box"]);
    let seen = home.exec("box", "git log --format=%s; git status --short; git tag; git fsck --no-dangling");
    assert_eq!(seen.out(), "outside\nfirst\n M lines\nA  loose\nv1\n", "{seen}");

    // Both move, to different branches, and no file of git's changed on both sides.
    home.exec("box", "git commit -qam inside");
    yard.script("git reset -q; git checkout -qb other; echo more >> fresh; git commit -qam elsewhere");
    let refused = home.zeno(&["refresh", "box", "--on-conflict", "ours"]);
    assert_eq!(refused.code, 5, "{refused}");
    assert!(refused.out().contains("conflict .git/HEAD\n"), "{refused}");
    home.ok(&["refresh", "box", "--on-conflict", "theirs"]);
    let seen = home.exec("box", "git branch --show-current; git log --format=%s; git log -1 --format=%s -");
    assert!(seen.out().starts_with("other\nelsewhere\noutside\nfirst\n"), "{seen}");
    let kept =
        home.exec("box", "git for-each-ref --format='%(refname) %(subject)' refs/heads; git status --short");
    assert!(kept.out().contains(" inside\n") && !kept.out().contains("D "), "{kept}");
}

#[test]
fn what_is_hidden_now_stays_hidden() {
    let home = Home::new();
    let yard = yard(&home);
    yard.script(
        "printf 'built\\n.env\\n' > .gitignore; echo a=1 > .env; mkdir e; echo e > e/e; git add -f .gitignore .env e; \
         git commit -qm env; echo OTHER=1 > e/.env",
    );
    home.create_in("own", &yard.path);
    let seen = home.exec("own", "sed -i s/1/9/ .env; cat .env e/.env");
    assert_eq!(seen.out(), "a=9\n", "what is tracked is shown: {seen}");
    yard.script("git rm -q --cached .env; git commit -qm hide; echo SECRET=1 >> .env; rm -r e");
    home.exec("own", "echo mine > e/.env");
    home.ok(&["refresh", "own"]);
    assert_eq!(home.exec("own", "cat .env e/.env").out(), "a=9\nmine\n", "its own is all it has");
}

#[test]
fn what_was_read_live_is_still_watched() {
    let home = Home::new();
    let yard = yard(&home);
    yard.script("mkdir built; echo before > built/cache");
    home.create_in("own", &yard.path);
    home.exec("own", "echo inside > built/cache");
    yard.script("echo outside > built/cache; echo z > other");
    let named = yard.path.join("built/cache");
    let promote = ["promote", "own", "--paths", named.to_str().unwrap()];
    assert_eq!(home.zeno(&promote).code, 5);
    home.ok(&["refresh", "own"]);
    let refused = home.zeno(&promote);
    assert_eq!(refused.code, 5, "{refused}");
    assert_eq!(fs::read_to_string(&named).unwrap(), "outside\n");
}

#[test]
fn nothing_that_was_done_meanwhile_is_lost() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec("box", "mkdir big; for n in $(seq 2000); do echo $n > big/$n; done; mv big moved");
    yard.script("echo z > other");
    home.detach("box", "n=0; while :; do n=$((n+1)); echo $n >> /tmp/ticks; done");
    let mut refresh = home.command(&["refresh", "box"]).spawn().unwrap();
    let (mut tried, mut done) = (0, 0);
    while refresh.try_wait().unwrap().is_none() {
        tried += 1;
        // One that is ended says so.
        done += u32::from(home.exec("box", "echo x >> important").code == 0);
    }
    assert!(refresh.wait().unwrap().success());
    let lines: u32 = home.exec("box", "touch important; wc -l < important").out().trim().parse().unwrap();
    assert!((done..=tried).contains(&lines), "{lines} of {done} that succeeded");
    assert!(done > 0);
    // What was cut off is a whole line less at most.
    let counted = home.exec("box", "tail -n1 /tmp/ticks; wc -l < /tmp/ticks").out();
    let numbers: Vec<&str> = counted.lines().collect();
    assert_eq!(numbers[0], numbers[1], "no line is missing in between");
}

#[test]
fn a_workspace_that_is_gone_and_things_that_cannot_be_carried() {
    let home = Home::new();
    let yard = yard(&home);
    yard.script("mkdir ends; mkfifo ends/pipe; mkdir -p deep/down; echo d > deep/down/d; git add -A; git commit -qm more");
    home.create_in("own", &yard.path);
    home.exec("own", "mv ends moved; mkdir deep/down/built; echo kept > deep/down/built/kept; mkfifo mine");
    yard.script("rm -r deep; echo z > other");
    let done = home.json(&["refresh", "own"]);
    assert_eq!(done["status"], "done", "{done}");
    let seen = home.exec("own", "cat deep/down/built/kept; test -p mine && echo mine; ls moved");
    if is_root() {
        assert_eq!(seen.out(), "kept\nmine\n", "{seen}");
        assert_eq!(done["assessment"]["caveats"][0]["path"], "moved/pipe", "{done}");
    } else {
        // There `mv` has made it anew.
        assert_eq!(seen.out(), "kept\nmine\npipe\n", "{seen}");
    }

    fs::rename(&yard.path, home.yard().join("elsewhere")).unwrap();
    let refused = home.zeno(&["refresh", "own"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.err().contains("repository"), "{refused}");
    assert_eq!(home.state("own"), "active", "it is as it was");
}

/// Much that can be done to a tree, on both sides. Promoted, reality looks as the refreshed sandbox did.
#[test]
fn what_is_shown_is_what_comes_of_it() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec(
        "box",
        "mkdir -p a/b/c; for n in 1 2 3; do echo $n > a/b/c/$n; done; chmod 750 a/b; ln a/b/c/1 a/hard; \
         rm -r kept; echo file > kept; rm run; mkdir run; echo x > run/x; touch -d 2001-01-01 lines; \
         printf 'a\\0b' > binary; setfattr -n user.note -v yes binary 2>/dev/null; mv dir/a dir/z; : > 'new\nline'; true",
    );
    yard.script(
        "echo b > dir/b; mkdir side; echo s > side/s; rm old; sed -i s/six/SIX/ lines; chmod 700 side",
    );
    home.ok(&["refresh", "box"]);
    let look = "find . -path ./.git -prune -o -type d -printf '%p %y %m\\n' -o -printf '%p %y %m %s %T@ %l\\n' | sort; test a/hard -ef a/b/c/1; \
                find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum";
    let inside = home.exec("box", look);
    let done = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(inside.out(), yard.script(look), "{inside}");
}

/// Also with one that it left as it was, and when what would come of it is judged before it is real.
#[test]
fn the_names_of_one_file_stay_together() {
    let home = Home::new();
    let yard = Yard::new(&home, "echo readme > README; echo x > other");
    home.exec("box", "ln README further; echo new > one; ln one two");
    fs::write(yard.path.join("other"), "reality\n").unwrap();
    home.ok(&["refresh", "box"]);
    let pairs = |inodes: &str| {
        let inodes: Vec<&str> = inodes.split_whitespace().collect();
        (inodes[0] == inodes[1], inodes[2] == inodes[3], inodes[0] == inodes[2])
    };
    let stat = "stat -c %i README further one two";
    assert_eq!(pairs(&home.exec("box", stat).out()), (true, true, false));
    // Beside this nobody has judged it.
    fs::write(yard.path.join("other"), "reality again\n").unwrap();
    let done = home.json(&["promote", "box", "--check", "test README -ef further"]);
    assert!(done["promotion"]["verdict"].is_string(), "{done}");
    assert_eq!(pairs(&yard.script(stat)), (true, true, false));
}

fn yard(home: &Home) -> Yard {
    let script = format!(
        "mkdir kept dir; echo k > kept/k; echo a > dir/a; echo old > old; echo run > run; echo d > dropped; \
         echo built > .gitignore; printf '{LINES}' > lines"
    );
    Yard::new(home, &script)
}
