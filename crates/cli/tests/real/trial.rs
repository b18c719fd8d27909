//! `zeno try`: a command, what it did, and what becomes of that.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::home::{Home, Ran};
use crate::terminal::Screen;
use crate::wait::until;

/// One change of each kind, and one outside of the workspace.
const UPDATE: &str =
    "cd repository; echo two >> lock; echo new > added; rm gone; echo x > ~/elsewhere; echo done; exit 3";
const QUESTION: &str = "Promote it, pick files, keep or drop it? [p/f/k/d] ";

#[test]
fn a_person_looks_and_promotes() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let mut screen = yard.at_a_terminal(UPDATE);
    screen.next(QUESTION);
    let shown = screen.shown.clone();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text:?} in {shown}"));
    assert!(at("done") < at("workspace") && at("workspace") < at("machine"), "{shown}");
    assert!(at("  gone ") < at("  added ") && at("  lock ") < at("elsewhere"), "{shown}");
    assert_eq!(yard.listed(), "gone lock", "nothing has reached the real folder");
    screen.type_in(b"what?\n");
    screen.type_in(b"p\n");
    screen.next("kept: ");
    screen.next(", with what was left out");
    assert_eq!(screen.end(), 3, "the command's own code");
    assert_eq!((yard.listed().as_str(), yard.read("lock").as_str()), ("added lock", "one\ntwo\n"));
    home.ok(&["undo"]);
    assert_eq!(yard.listed(), "gone lock");
}

#[test]
fn some_files_are_picked_and_what_stands_in_the_way_is_asked_about_again() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let mut screen = yard.at_a_terminal(UPDATE);
    screen.next(QUESTION);
    fs::write(yard.path.join("lock"), "mine\n").unwrap();
    screen.type_in(b"promote\n");
    screen.next("both changed the same lines");
    screen.next("nothing was changed");
    screen.next(QUESTION);
    screen.type_in(b"f\n");
    screen.next("Which?");
    screen.type_in(b"nothing/like/this\n");
    screen.next("`nothing/like/this` is none of them");
    screen.next(QUESTION);
    screen.type_in(b"f\n");
    screen.next("Which?");
    screen.type_in(b"1 add*\n");
    screen.next("kept: ");
    assert_eq!(screen.end(), 3);
    assert_eq!((yard.listed().as_str(), yard.read("lock").as_str()), ("added lock", "mine\n"));
}

#[test]
fn what_is_promoted_is_judged_first_where_checks_are_declared() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let declare = |line: &str| {
        fs::write(yard.path.join("zeno.yaml"), format!("checks: {{unit: {line}}}\n")).unwrap();
    };
    declare("'grep two lock; exit 1'");
    let mut screen = yard.at_a_terminal("cd repository; echo two >> lock");
    screen.next(QUESTION);
    screen.type_in(b"p\n");
    screen.next("last words of unit");
    screen.next("  two");
    screen.next("it did not pass `unit`");
    screen.next(QUESTION);
    assert_eq!(yard.read("lock"), "one\n");
    // Who leaves while they run has nothing promoted.
    declare("sleep 1000");
    screen.type_in(b"p\n");
    until("the check to run", || (home.ok(&["list", "-q"]).lines().count() == 2).then_some(()));
    screen.signal(Signal::INT);
    until("the check to be gone", || (home.ok(&["list", "-q"]).lines().count() == 1).then_some(()));
    screen.next(QUESTION);
    declare("grep -q two lock");
    screen.type_in(b"p\n");
    screen.next("1 path modified as ");
    assert_eq!(screen.end(), 0);
    assert_eq!(yard.read("lock"), "one\ntwo\n");
    assert!(home.json(&["promotions"])[0]["verdict"].is_string());
    assert_eq!(home.json(&["verdicts"]).as_array().unwrap().len(), 2);

    let tried = yard.tried(&["--then", "promote", "--json"], "cd repository; echo three >> lock");
    let last: Value = serde_json::from_str(tried.out().lines().last().unwrap()).unwrap();
    assert!(
        last["promoted"]["promotion"]["verdict"].is_string(),
        "nothing moved, and it was judged: {tried}"
    );
}

#[test]
fn dropped_kept_or_nothing_to_keep() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let mut screen = yard.at_a_terminal(UPDATE);
    screen.next(QUESTION);
    screen.type_in(b"d\n");
    assert_eq!(screen.end(), 3);
    assert_eq!(home.ok(&["list", "-q"]), "");

    let mut screen = yard.at_a_terminal("true");
    screen.next("nothing has changed, so there is nothing to keep");
    assert_eq!(screen.end(), 0);
    assert_eq!(home.ok(&["list", "-q"]), "");

    // Who interrupts the question loses nothing.
    let mut screen = yard.at_a_terminal(UPDATE);
    screen.next(QUESTION);
    screen.signal(Signal::INT);
    screen.next("kept: ");
    assert_eq!(screen.end(), 3);
    let kept = home.ok(&["list", "-q"]);
    assert_eq!(home.exec(kept.trim(), "cat repository/added").out(), "new\n");
    assert_eq!(yard.listed(), "gone lock");
}

#[test]
fn without_a_terminal_it_is_said_before_or_kept() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let kept = yard.tried(&["--name", "box"], UPDATE);
    assert_eq!((kept.code, kept.out().as_str()), (3, "done\n"), "{kept}");
    assert!(kept.err().contains("nobody could be asked: --then promote|keep|drop decides"), "{kept}");
    assert_eq!(home.exec("box", "cat repository/added").out(), "new\n");

    let dropped = yard.tried(&["--then", "drop"], UPDATE);
    assert_eq!(dropped.code, 3, "{dropped}");
    assert_eq!(home.ok(&["list", "-q"]).lines().count(), 1);

    let promoted = yard.tried(&["--then", "promote", "--json"], "cd repository; echo two >> lock");
    assert_eq!(promoted.code, 0, "{promoted}");
    let last: Value = serde_json::from_str(promoted.out().lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["then"]), (&"tried".into(), &"promoted".into()), "{last}");
    assert_eq!(
        (&last["promoted"]["status"], &last["diff"]["workspace"][0]["path"]),
        (&"done".into(), &"lock".into())
    );
    assert_eq!(yard.read("lock"), "one\ntwo\n");
    assert_eq!(home.ok(&["list", "-q"]).lines().count(), 1, "nothing was left out, so nothing is kept");

    // What cannot be promoted is kept, and the exit code is that of promoting.
    let blocked = yard.tried(&["--then", "promote"], "cd repository; echo x > .envrc");
    assert_eq!(blocked.code, 4, "{blocked}");
    assert!(blocked.err().contains("executes .envrc") && blocked.err().contains("kept: "), "{blocked}");
    fs::write(yard.path.join("zeno.yaml"), "checks: {never: 'echo no way; false'}\n").unwrap();
    let closed = yard.tried(&["--then", "promote"], "cd repository; echo more >> lock");
    assert_eq!(closed.code, 4, "{closed}");
    for told in ["last words of never", "  no way\n", "it did not pass `never`", "kept: "] {
        assert!(closed.err().contains(told), "{told:?}: {closed}");
    }
    assert_eq!(yard.tried(&[], "no-such-program").code, 127);
}

struct Yard<'a> {
    home: &'a Home,
    path: PathBuf,
}

impl<'a> Yard<'a> {
    fn new(home: &'a Home) -> Self {
        let path = home.yard().join("repository");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("lock"), "one\n").unwrap();
        fs::write(path.join("gone"), "gone\n").unwrap();
        let script =
            "git init -q . && git add . && git -c user.name=z -c user.email=z@localhost commit -qm first";
        assert!(Command::new("sh").args(["-c", script]).current_dir(&path).status().unwrap().success());
        Self { home, path }
    }

    fn arguments<'b>(&'b self, options: &[&'b str], line: &'b str) -> Vec<&'b str> {
        let workspace = ["try", "--workspace", self.path.to_str().unwrap()];
        [&workspace, options, &["--", "sh", "-c", line]].concat()
    }

    fn at_a_terminal(&self, line: &str) -> Screen {
        Screen::open(self.home, &self.arguments(&[], line))
    }

    fn tried(&self, options: &[&str], line: &str) -> Ran {
        self.home.zeno(&self.arguments(options, line))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    fn listed(&self) -> String {
        let entries = fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != ".git");
        names.sort();
        names.join(" ")
    }
}
