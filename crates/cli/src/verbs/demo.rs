//! `zeno demo`: a tour made of real calls of `zeno` on this machine. What is shown is what happened, and the
//! times are what a clock on the wall says.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::output;
use crate::render::paint::Paint;

pub(crate) fn demo(invocation: &Invocation) -> Result<u8, Failure> {
    let folder = tempfile::Builder::new().prefix("zeno-demo-").tempdir().map_err(Failure::DemoFolder)?;
    let tour = Tour {
        zeno: std::env::current_exe().map_err(Failure::OwnProgram)?,
        folder: folder.path().to_owned(),
        sandbox: format!("demo-{}", std::process::id()),
        paint: invocation.stdout_paint(),
    };
    tour.run()?;
    Ok(DONE)
}

struct Tour {
    zeno: PathBuf,
    folder: PathBuf,
    sandbox: String,
    paint: Paint,
}

impl Tour {
    fn run(&self) -> Result<(), Failure> {
        self.write("notes.txt", "written on the real machine\n")?;
        self.say("The first call starts the daemon and freezes the folder, so it takes longest.")?;
        self.zeno(&["run", "--workspace", ".", "--", "cat", "notes.txt"])?;
        self.say("Again: the daemon is there and the folder has not changed.")?;
        self.zeno(&["run", "--workspace", ".", "--", "cat", "notes.txt"])?;

        self.say("A command may destroy all it sees. It sees a copy.")?;
        let havoc = "rm -rf /etc /home notes.txt 2>/dev/null; ls /etc notes.txt 2>&1 | head -3; exit 0";
        self.zeno(&["run", "--workspace", ".", "--", "/bin/sh", "-c", havoc])?;
        self.say(&format!(
            "On the real machine: /etc has {} entries, notes.txt says {:?}.",
            entries(Path::new("/etc"))?,
            self.read("notes.txt")?
        ))?;

        self.say("A sandbox can stay. What is edited outside afterwards does not leak in.")?;
        let life = ["--ttl", "10m", "--on-expire", "destroy"];
        self.zeno(&[&["create", "--workspace", ".", "--name", &self.sandbox], &life[..]].concat())?;
        let toured = self.in_sandbox().and_then(|()| self.save_game()).and_then(|()| self.race());
        // The sandbox goes in either case; of two failures the first is the one to tell.
        let removed = self.zeno(&["destroy", &self.sandbox]);
        toured.and(removed)?;
        self.say("What did not win goes by itself in a minute. Yours to try: zeno run -- COMMAND")
    }

    fn in_sandbox(&self) -> Result<(), Failure> {
        self.write("notes.txt", "edited on the real machine\n")?;
        self.zeno(&["exec", &self.sandbox, "--", "cat", "notes.txt"])?;
        self.say("`status` knows that reality has moved on, and says what the copy cannot do.")?;
        self.zeno(&["status", &self.sandbox])?;
        self.say("And what is written inside stays inside.")?;
        self.zeno(&[
            "exec",
            &self.sandbox,
            "--",
            "/bin/sh",
            "-c",
            "echo from inside > notes.txt; cat notes.txt",
        ])?;
        self.say(&format!("On the real machine notes.txt says {:?}.", self.read("notes.txt")?))?;
        self.say(
            "It can be brought up to date. Where both sides changed the same, somebody has to say who wins.",
        )?;
        self.zeno(&["refresh", &self.sandbox, "--on-conflict", "theirs"])
    }

    fn save_game(&self) -> Result<(), Failure> {
        self.say("A save point, something risky, and back.")?;
        self.zeno(&["snapshot", &self.sandbox, "--name", &self.sandbox])?;
        self.zeno(&["exec", &self.sandbox, "--", "rm", "notes.txt"])?;
        self.zeno(&["diff", &self.sandbox])?;
        let back = self.zeno(&["rollback", &self.sandbox]);
        let removed = self.zeno(&["snapshots", "rm", &self.sandbox]);
        back.and(removed)?;
        self.zeno(&["exec", &self.sandbox, "--", "cat", "notes.txt"])
    }

    fn race(&self) -> Result<(), Failure> {
        self.say("Several fixes at once, each in a copy of its own. A check says which are right; the winner becomes real.")?;
        self.zeno(&[
            "race",
            "--from",
            &self.sandbox,
            "--try",
            "shout=tr a-z A-Z < notes.txt > loud; mv loud notes.txt",
            "--try",
            "forget=: > notes.txt",
            "--try",
            "break=exit 3",
            "--check",
            "grep -q REAL notes.txt",
            "--promote",
            "yes",
            "--ttl",
            "1m",
        ])?;
        self.say(&format!("On the real machine notes.txt says {:?}.", self.read("notes.txt")?))?;
        self.zeno(&["undo"])?;
        self.say(&format!("And now {:?}.", self.read("notes.txt")?))
    }

    /// Shows a call, makes it, and says how long it took from start to end as seen from here.
    fn zeno(&self, arguments: &[&str]) -> Result<(), Failure> {
        let line = arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        output::answer(&format!("{}\n", self.paint.bold(&format!("$ zeno {line}"))))?;
        let begun = Instant::now();
        let status = Command::new(&self.zeno)
            .args(arguments.iter().map(OsStr::new))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .status()
            .map_err(|source| Failure::DemoStart { line: line.clone(), source })?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        output::answer(&format!("{}\n", self.paint.dim(&format!("  ({took:.1} ms)"))))?;
        if status.success() { Ok(()) } else { Err(Failure::DemoStep { line, code: status.code() }) }
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        output::answer(&format!("\n{text}\n"))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|source| Failure::WriteHost { path, source })
    }

    fn read(&self, name: &str) -> Result<String, Failure> {
        let path = self.folder.join(name);
        Ok(fs::read_to_string(&path)
            .map_err(|source| Failure::ReadHost { path, source })?
            .trim_end()
            .to_owned())
    }
}

fn entries(path: &Path) -> Result<usize, Failure> {
    let entries = fs::read_dir(path).map_err(|source| Failure::ReadHost { path: path.to_owned(), source })?;
    Ok(entries.count())
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}
