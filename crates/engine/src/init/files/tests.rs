//! Operations at home, on real folders and over a real conversation.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Code;
use model::exec::{FrameHead, FrameKind, Text};
use model::files::{Change, ChangeKind, Contents, Entries, Entry, FileKind, FileOp, Part};
use proptest::prelude::*;
use tempfile::TempDir;

use super::fault::Fault;
use super::{Whose, Wire, home};

struct Stage {
    home: TempDir,
}

type Said = Vec<(FrameKind, Vec<u8>)>;

impl Stage {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn whose(&self) -> Whose {
        Whose { identity: None, home: Some(self.home.path().to_owned().into()) }
    }

    /// What is said in answer, the caller having said `input` before.
    fn run(&self, op: &FileOp, input: &[&[u8]]) -> Result<Said, Code> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut early = Vec::new();
        for piece in input {
            early.extend(FrameHead { kind: FrameKind::Stdin, length: piece.len() as u32 }.encode());
            early.extend(*piece);
        }
        let reading = std::thread::spawn(move || heard(ours));
        let mut wire = Wire { stream: theirs, early };
        let done = home::work(&mut wire, self.whose(), op);
        drop(wire);
        let said = reading.join().unwrap();
        done.map(|()| said).map_err(|fault: Fault| fault.code(op))
    }

    fn entry(&self, op: &FileOp) -> Result<Entry, Code> {
        Ok(typed(self.run(op, &[])?.last().unwrap()))
    }

    fn store(&self, path: &str, contents: &[u8], metadata: &[(&str, &str)]) -> Result<Entry, Code> {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let said = self.run(&FileOp::Upload { path: path.into(), metadata }, &[contents, b""])?;
        assert_eq!(said.len(), 2);
        Ok(typed(&said[1]))
    }

    fn listed(&self, path: &str, depth: u32) -> Result<Vec<String>, Code> {
        let said = self.run(&FileOp::Entries { path: path.into(), depth }, &[])?;
        let (last, batches) = said.split_last().unwrap();
        assert_eq!(last.1, b"null");
        let entries = batches.iter().flat_map(|batch| typed::<Entries>(batch).entries);
        let root = format!("{}/", self.home.path().display());
        Ok(entries.map(|entry| entry.path.display().strip_prefix(&root).unwrap().to_owned()).collect())
    }
}

fn heard(mut stream: UnixStream) -> Said {
    let mut said = Vec::new();
    while let Some(frame) = next(&mut stream) {
        said.push(frame);
    }
    said
}

fn next(stream: &mut UnixStream) -> Option<(FrameKind, Vec<u8>)> {
    let mut head = [0; FrameHead::SIZE];
    stream.read_exact(&mut head).ok()?;
    let head = FrameHead::decode(head).unwrap();
    let mut payload = vec![0; head.length as usize];
    stream.read_exact(&mut payload).unwrap();
    Some((head.kind, payload))
}

fn typed<T: serde::de::DeserializeOwned>((kind, payload): &(FrameKind, Vec<u8>)) -> T {
    assert_eq!(*kind, FrameKind::Answer);
    serde_json::from_slice(payload).unwrap()
}

fn look(path: impl Into<Text>) -> FileOp {
    FileOp::Entry { path: path.into() }
}

#[test]
fn paths_begin_at_home() {
    let stage = Stage::new();
    stage.store("a/b/c", b"x", &[]).unwrap();
    let whole = stage.path("a/b/c");
    for path in ["a/b/c", "./a//b/c", "~/a/b/c", "a/x/../b/c", "~/../../../../../../../.."] {
        let entry = stage.entry(&look(path)).unwrap();
        if path.ends_with('c') {
            assert_eq!(entry.path, Text::from(whole.clone()), "{path}");
        } else {
            assert_eq!(entry.path, "/".into());
        }
    }
    assert_eq!(stage.entry(&look(whole.clone())).unwrap().path, whole.into());
    assert_eq!(stage.entry(&look("")).unwrap().path, stage.home.path().to_owned().into());
    assert_eq!(stage.entry(&look("~root/x")), Err(Code::BadRequest));
    assert_eq!(stage.entry(&look("no")), Err(Code::NotFound));
    assert_eq!(stage.entry(&look("a/b/c/d")), Err(Code::NotFound));
    assert_eq!(stage.entry(&look("x".repeat(300).as_str())), Err(Code::BadRequest));
    assert_eq!(stage.entry(&look("a\0b")), Err(Code::BadRequest));
}

#[test]
fn a_file_is_stored_with_what_is_noted_of_it() {
    let stage = Stage::new();
    let entry = stage.store("f", b"one", &[("author", "ann"), ("k", "")]).unwrap();
    assert_eq!((entry.stat.kind, entry.stat.size, entry.stat.mode), (FileKind::File, 3, 0o644));
    let noted = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(entry.metadata, noted(&[("author", "ann"), ("k", "")]));
    // What is written anew has new notes only, and other attributes as before.
    let other = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(stage.path("f"), c"user.other", b"kept", other).unwrap();
    let entry = stage.store("f", b"longer than that", &[("k", "v")]).unwrap();
    assert_eq!((entry.stat.size, entry.metadata), (16, noted(&[("k", "v")])));
    let mut value = vec![0; 10];
    assert_eq!(rustix::fs::getxattr(stage.path("f"), c"user.other", &mut value), Ok(4));
    assert_eq!(stage.store("f", b"", &[]).unwrap().metadata, noted(&[]));
}

#[test]
fn what_is_no_file_is_neither_written_nor_read() {
    let stage = Stage::new();
    fs::create_dir(stage.path("d")).unwrap();
    fs::write(stage.path("f"), "").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        stage.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for path in ["d", "fifo", "f/x", ""] {
        assert_eq!(stage.store(path, b"x", &[]).err(), Some(Code::BadRequest), "{path}");
    }
    for path in ["d", "fifo", ""] {
        let op = FileOp::Download { path: path.into(), part: None };
        assert_eq!(stage.run(&op, &[]), Err(Code::BadRequest), "{path}");
    }
    assert_eq!(stage.run(&FileOp::Download { path: "no".into(), part: None }, &[]), Err(Code::NotFound));
}

#[test]
fn parts_of_a_file() {
    let stage = Stage::new();
    fs::write(stage.path("f"), "0123456789").unwrap();
    fs::write(stage.path("empty"), "").unwrap();
    let read = |path: &str, part| {
        let said = stage.run(&FileOp::Download { path: path.into(), part }, &[]).unwrap();
        let contents: Contents = typed(&said[0]);
        assert_eq!(said.last().unwrap().1, b"null");
        let bytes: Vec<u8> = said[1..said.len() - 1].iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        (contents.size, contents.first, contents.length, String::from_utf8(bytes).unwrap())
    };
    let from = |first, last| Some(Part::From { first, last });
    let of = |first, text: &str| (Some(10), first, text.len() as u64, text.to_owned());
    assert_eq!(read("f", None), of(0, "0123456789"));
    assert_eq!(read("f", from(2, Some(4))), of(2, "234"));
    assert_eq!(read("f", from(8, Some(u64::MAX))), of(8, "89"));
    assert_eq!(read("f", from(9, None)), of(9, "9"));
    assert_eq!(read("f", from(10, None)), of(10, ""));
    assert_eq!(read("f", Some(Part::Last { length: 3 })), of(7, "789"));
    assert_eq!(read("f", Some(Part::Last { length: 30 })), of(0, "0123456789"));
    assert_eq!(read("empty", None), (Some(0), 0, 0, String::new()));
    // Its size is nothing, and it is not empty.
    let (size, _, _, text) = read("/proc/self/status", None);
    assert!(size.is_none() && text.starts_with("Name:"));
}

#[test]
fn folders_are_listed_depth_first() {
    let stage = Stage::new();
    for path in ["b/x/deep", "b/y", "a", "c/z"] {
        stage.store(path, b"", &[]).unwrap();
    }
    symlink("b", stage.path("link")).unwrap();
    assert_eq!(stage.listed("", 1).unwrap(), ["a", "b", "c", "link"]);
    assert_eq!(stage.listed(".", 2).unwrap(), ["a", "b", "b/x", "b/y", "c", "c/z", "link"]);
    assert_eq!(
        stage.listed("~", u32::MAX).unwrap(),
        ["a", "b", "b/x", "b/x/deep", "b/y", "c", "c/z", "link"]
    );
    assert_eq!(stage.listed("link", 1).unwrap(), ["link/x", "link/y"]);
    assert_eq!(stage.listed("a", 1), Err(Code::BadRequest));
    assert_eq!(stage.listed("no", 1), Err(Code::NotFound));
    let link = stage.entry(&look("link")).unwrap();
    assert_eq!(link.stat.target, Some("b".into()));
    assert_eq!(link.leads_to.unwrap().kind, FileKind::Directory);
}

#[test]
fn folders_are_made_once_and_removed_as_often_as_one_likes() {
    let stage = Stage::new();
    let make = FileOp::NewDir { path: "a/b".into() };
    assert_eq!(stage.entry(&make).unwrap().stat.kind, FileKind::Directory);
    assert_eq!(stage.entry(&make), Err(Code::Conflict));
    fs::write(stage.path("f"), "").unwrap();
    assert_eq!(stage.entry(&FileOp::NewDir { path: "f".into() }), Err(Code::BadRequest));
    for path in ["a", "a", "f", "f/x", "no/x"] {
        stage.run(&FileOp::Clear { path: path.into() }, &[]).unwrap();
    }
    assert_eq!(fs::read_dir(stage.home.path()).unwrap().count(), 0);
    assert_eq!(stage.run(&FileOp::Clear { path: "".into() }, &[]), Err(Code::BadRequest));
}

#[test]
fn things_move_even_to_another_file_system() {
    let stage = Stage::new();
    let shift = |from: &str, to: &str| stage.entry(&FileOp::Move { from: from.into(), to: to.into() });
    stage.store("d/f", b"text", &[("k", "v")]).unwrap();
    symlink("f", stage.path("d/l")).unwrap();
    assert_eq!(shift("d", "new/e").unwrap().path, stage.path("new/e").into());
    assert_eq!(shift("no", "x/y"), Err(Code::NotFound));
    assert!(!stage.path("x").exists());
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let there = elsewhere.path().join("e");
    shift("new/e", there.to_str().unwrap()).unwrap();
    assert_eq!(fs::read_to_string(there.join("l")).unwrap(), "text");
    assert!(!stage.path("new/e").exists());
    let back = shift(there.join("f").to_str().unwrap(), "g").unwrap();
    assert_eq!(fs::read_to_string(stage.path("g")).unwrap(), "text");
    assert_eq!(back.stat.mode, 0o644);
    assert!(shift(there.to_str().unwrap(), "g").is_err());
    assert!(there.join("l").is_symlink());
}

/// A watch, and what is heard of it.
struct Watching {
    heard: UnixStream,
    thread: std::thread::JoinHandle<()>,
}

impl Watching {
    fn begin(stage: &Stage, recursive: bool, entries: bool) -> Self {
        let (mut heard, theirs) = UnixStream::pair().unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (whose, op) = (stage.whose(), FileOp::Watch { path: "".into(), recursive, entries });
        let thread = std::thread::spawn(move || {
            let mut wire = Wire { stream: theirs, early: Vec::new() };
            home::work(&mut wire, whose, &op).unwrap();
        });
        assert_eq!(next(&mut heard).unwrap(), (FrameKind::Answer, b"null".to_vec()));
        Self { heard, thread }
    }

    /// All changes until this one.
    fn until(&mut self, name: &str, kind: ChangeKind) -> Vec<Change> {
        let (mut all, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < Duration::from_secs(30) {
            all.extend(typed::<Vec<Change>>(&next(&mut self.heard).unwrap()));
            if all.iter().any(|change: &Change| change.name == name.into() && change.kind == kind) {
                return all;
            }
        }
        panic!("it was not told: {all:?}");
    }

    fn end(self) {
        drop(self.heard);
        self.thread.join().unwrap();
    }
}

fn kinds(changes: &[Change], name: &str) -> Vec<ChangeKind> {
    changes.iter().filter(|change| change.name == name.into()).map(|change| change.kind).collect()
}

#[test]
fn changes_are_told_until_the_caller_leaves() {
    let stage = Stage::new();
    fs::create_dir(stage.path("d")).unwrap();
    let mut watching = Watching::begin(&stage, false, true);
    fs::write(stage.path("f"), "x").unwrap();
    fs::write(stage.path("d/unseen"), "x").unwrap();
    fs::rename(stage.path("f"), stage.path("g")).unwrap();
    fs::remove_file(stage.path("g")).unwrap();
    let changes = watching.until("g", ChangeKind::Remove);
    assert_eq!(kinds(&changes, "f"), [ChangeKind::Create, ChangeKind::Write, ChangeKind::Rename]);
    assert_eq!(kinds(&changes, "g"), [ChangeKind::Create, ChangeKind::Remove]);
    assert!(kinds(&changes, "d/unseen").is_empty());
    fs::write(stage.path("h"), "x").unwrap();
    let changes = watching.until("h", ChangeKind::Create);
    assert_eq!(changes[0].entry.as_ref().unwrap().path, stage.path("h").into());
    watching.end();
}

#[test]
fn new_folders_are_watched_too() {
    let stage = Stage::new();
    fs::create_dir_all(stage.path("old/deep")).unwrap();
    let mut watching = Watching::begin(&stage, true, false);
    fs::create_dir_all(stage.path("new/a/b")).unwrap();
    fs::write(stage.path("new/a/b/f"), "x").unwrap();
    fs::write(stage.path("old/deep/f"), "x").unwrap();
    let changes = watching.until("old/deep/f", ChangeKind::Create);
    for path in ["new", "new/a", "new/a/b", "new/a/b/f"] {
        let creations = kinds(&changes, path).into_iter().filter(|kind| *kind == ChangeKind::Create).count();
        assert_eq!(creations, 1, "{path}: {changes:?}");
    }
    // By its new name from now on.
    fs::rename(stage.path("old"), stage.path("moved")).unwrap();
    fs::write(stage.path("moved/deep/g"), "x").unwrap();
    let changes = watching.until("moved/deep/g", ChangeKind::Create);
    assert_eq!(kinds(&changes, "old"), [ChangeKind::Rename]);
    assert_eq!(kinds(&changes, "moved"), [ChangeKind::Create]);
    fs::remove_dir_all(stage.path("moved")).unwrap();
    fs::remove_dir_all(stage.path("new")).unwrap();
    watching.until("new", ChangeKind::Remove);
    watching.end();
}

#[test]
fn only_folders_are_watched() {
    let stage = Stage::new();
    fs::File::create(stage.path("f")).unwrap().write_all(b"x").unwrap();
    let watch = |path: &str| FileOp::Watch { path: path.into(), recursive: true, entries: false };
    assert_eq!(stage.run(&watch("f"), &[]), Err(Code::BadRequest));
    assert_eq!(stage.run(&watch("no"), &[]), Err(Code::NotFound));
}

proptest! {
    #[test]
    fn any_path_is_answered(path in "[a~./\\\\]{0,12}|.{0,20}") {
        let stage = Stage::new();
        // Nothing but the home may be touched, so it only looks.
        drop(stage.run(&look(path.as_str()), &[]));
        prop_assert!(Path::new(stage.home.path()).is_dir());
    }
}
