//! What a sandbox may leave for whoever promotes it: nothing of it gets further than it was told, and nothing is hidden.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::files::listing;
use crate::home::{Home, Ran, is_root};
use crate::yard::Yard;

#[track_caller]
fn inside(home: &Home, script: &str) -> String {
    let ran = home.exec("box", &format!("set -e; {script}"));
    assert_eq!(ran.code, 0, "{script}: {ran}");
    ran.out()
}

#[track_caller]
fn refused(home: &Home, more: &[&str], code: i32) -> Ran {
    let ran = home.zeno(&[&["promote", "box"], more].concat());
    assert_eq!(ran.code, code, "{ran}");
    ran
}

#[test]
fn what_gives_rights_and_what_is_no_file_is_refused_by_name() {
    let home = Home::new();
    let yard = Yard::new(&home, "echo x > file");
    let before = listing(&yard.path);
    inside(&home, "cp /usr/bin/id suid; chmod 4755 suid; cp /usr/bin/id sgid; chmod 2755 sgid; mkfifo pipe");
    inside(&home, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"talk\")'");
    // Overlayfs's word for "not here", and a disk: nobody inside can make either.
    for device in ["c 0 0", "c 1 3", "b 7 0"] {
        assert_ne!(home.exec("box", &format!("mknod node {device}")).code, 0, "{device}");
    }
    // Root inside may give a file a capability, an ordinary user may not.
    let set = home.exec("box", "cp /usr/bin/id capable && setcap cap_net_raw+ep capable");
    if is_root() {
        assert_eq!(set.code, 0, "{set}");
        inside(&home, "getcap capable | grep cap_net_raw");
    } else {
        assert!(set.code == 1 && set.err().contains("not permitted"), "{set}");
        inside(&home, "rm capable");
    }
    let told = refused(&home, &[], 4).out();
    let expected = ["pipe", "sgid", "suid", "talk"].into_iter().chain(is_root().then_some("capable"));
    for name in expected.clone() {
        assert!(told.contains(&format!("refused  {name}: ")), "{name}: {told}");
    }
    assert_eq!(told.matches("refused  ").count(), expected.count(), "{told}");
    assert_eq!(listing(&yard.path), before);
}

/// A layer's own notes, written from inside: neither believed nor carried out.
#[test]
fn notes_for_the_overlay_that_are_written_inside_mean_nothing() {
    let home = Home::new();
    let yard = Yard::new(&home, "mkdir d; echo kept > d/kept; echo x > file");
    let set = "import os, sys
for path, name, value in (('d', 'redirect', b'/etc'), ('d', 'opaque', b'y'), ('n', 'redirect', b'/etc'),
                          ('n', 'whiteout', b'y'), ('file', 'metacopy', b''), ('file', 'redirect', b'/etc/passwd')):
    for space in ('user', 'trusted'):
        try:
            os.setxattr(path, f'{space}.overlay.{name}', value)
        except OSError as error:
            print(space, error.errno)
";
    fs::write(home.yard().join("set.py"), set).unwrap();
    inside(&home, "mkdir n; echo more >> file; echo new > d/new; python3 ~/set.py; mkdir -p n/deep");
    let seen = inside(&home, "find . -name .git -prune -o -print | sort; cat file d/kept");
    home.ok(&["promote", "box"]);
    assert_eq!(yard.script("find . -name .git -prune -o -print | sort; cat file d/kept"), seen);
    let noted = yard.script("getfattr -Rhd -m overlay . 2>&1");
    assert_eq!(noted, "", "no later overlay on this folder finds them");
    home.ok(&["undo"]);
    assert_eq!(yard.script("find d n file 2>/dev/null || :; cat file"), "d\nd/kept\nfile\nx\n");
}

#[test]
fn a_further_name_for_a_file_of_the_host_is_not_one_outside() {
    let home = Home::new();
    let (precious, hard) = (home.yard().join("precious"), home.yard().join("hard"));
    fs::write(&precious, "mine\n").unwrap();
    home.create("box", &[]);
    inside(&home, "ln ~/precious ~/hard");
    let told = home.ok(&["promote", "box", "--paths", hard.to_str().unwrap()]);
    assert!(told.contains("are one file in the sandbox and are two here"), "{told}");
    assert_eq!([&precious, &hard].map(|path| fs::metadata(path).unwrap().nlink()), [1, 1]);
    home.ok(&["undo"]);
    inside(&home, "echo evil >> ~/hard");
    home.ok(&["promote", "box", "--paths", hard.to_str().unwrap()]);
    let read = |path| fs::read_to_string(path).unwrap();
    assert_eq!((read(&precious), read(&hard)), ("mine\n".into(), "mine\nevil\n".into()));
}

#[test]
fn a_file_that_becomes_a_link_after_it_was_looked_at_leads_nowhere() {
    let home = Home::new();
    let yard = Yard::new(&home, "mkdir src; echo x > src/file; echo x > file");
    let outside = home.yard().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "mine\n").unwrap();
    let untouched = listing(&outside);

    // Inside: what was a file when it was looked at is a link when it is promoted, and then a folder's name is.
    inside(&home, "echo more >> file; echo more >> src/file");
    assert!(home.ok(&["promote", "box", "--dry-run"]).contains("modify  src/file"));
    inside(&home, &format!("rm -r file src; ln -s {0}/file file; ln -s {0} src", outside.display()));
    home.ok(&["promote", "box"]);
    assert_eq!(fs::read_link(yard.path.join("src")).unwrap(), outside);
    home.ok(&["refresh", "box"]);
    inside(&home, "rm src file; mkdir src; echo evil > src/file; echo evil > file");
    home.ok(&["promote", "box"]);
    assert!(!yard.path.join("src").is_symlink());
    assert_eq!((listing(&outside), yard.script("cat src/file file")), (untouched, "evil\nevil\n".to_owned()));
}

/// Reality's folder is swapped for a link to somewhere else, over and over, while it is promoted to.
#[test]
fn a_folder_that_is_swapped_for_a_link_meanwhile_is_never_followed() {
    let home = Home::new();
    let yard = Yard::new(&home, "mkdir src; for n in $(seq 40); do echo x > src/$n; done");
    let outside = home.yard().join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 1..=40 {
        fs::write(outside.join(number.to_string()), "x\n").unwrap();
    }
    let (folder, link) = (yard.path.join("src"), home.yard().join("link"));
    symlink(&outside, &link).unwrap();
    let untouched = listing(&outside);
    inside(&home, "for n in $(seq 40); do echo evil > src/$n; done");
    home.ok(&["stop", "box"]);
    let swap = || renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    let is_over = AtomicBool::new(false);
    let rans = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap();
                std::thread::yield_now();
            }
        });
        // Nothing here may fail before the other thread is told to end.
        let rans: Vec<Ran> =
            (0..8).flat_map(|_| [home.zeno(&["promote", "box"]), home.zeno(&["undo"])]).collect();
        is_over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        rans
    });
    assert_eq!(listing(&outside), untouched, "{rans:?}");
    // Promoted, a conflict, or disturbed in the middle, and told; never a failure of another kind.
    for ran in rans.iter().step_by(2) {
        assert!([0, 5].contains(&ran.code), "{ran}");
    }
    if folder.is_symlink() {
        swap();
    }
    let refused = {
        swap();
        refused(&home, &[], 5)
    };
    assert!(refused.out().contains("conflict src/"), "{refused}");
    swap();
    assert_eq!(listing(&outside), untouched);
}

#[test]
fn names_that_look_alike_stay_apart_and_odd_ones_arrive() {
    let names: [&[u8]; 13] = [
        b"README",
        b"readme",
        b"ReadMe",
        "caf\u{e9}".as_bytes(),
        "cafe\u{301}".as_bytes(),
        "\u{2126}".as_bytes(),
        "\u{3a9}".as_bytes(),
        b"new\nline",
        b"\xff\xfe",
        b"-rf",
        b"...",
        b"$(touch x)'\"",
        b"trailing ",
    ];
    let home = Home::new();
    let yard = Yard::new(&home, "echo x > file");
    for (number, name) in names.iter().enumerate() {
        let script = format!("echo {number} > \"$0\"");
        let path = [b"./", *name].concat();
        let made = home
            .command(&["exec", "box", "--", "sh", "-c", &script])
            .arg(OsStr::from_bytes(&path))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    let told = home.ok(&["promote", "box"]);
    assert!(!told.contains("new\nline") && told.contains("13 paths created"), "{told}");
    for (number, name) in names.iter().enumerate() {
        let text = fs::read_to_string(yard.path.join(OsStr::from_bytes(name))).unwrap();
        assert_eq!(text, format!("{number}\n"), "{}", String::from_utf8_lossy(name));
    }
    assert_eq!(fs::read_dir(&yard.path).unwrap().count(), names.len() + 2, "and the file and `.git`");
    home.ok(&["undo"]);
    assert_eq!(fs::read_dir(&yard.path).unwrap().count(), 2);
}

/// Git takes a folder with these names in it for a repository, whatever it is called, and runs what its settings say.
#[test]
fn a_folder_that_git_takes_for_a_repository_needs_leave() {
    let home = Home::new();
    let yard = Yard::new(&home, "echo x > file");
    let run = home.yard().join("run");
    inside(
        &home,
        &format!(
            "mkdir -p docs/objects docs/refs docs/hooks; echo 'ref: refs/heads/main' > docs/HEAD; \
             printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = touch {0}\\n' > docs/config; \
             echo x > docs/hooks/post-checkout; echo text > docs/text; echo x > file2",
            run.display()
        ),
    );
    let told = refused(&home, &[], 4).out();
    for path in ["docs/HEAD", "docs/config", "docs/hooks/post-checkout", "docs/text"] {
        assert!(told.contains(&format!("executes {path}: git takes its folder for a repository")), "{told}");
    }
    assert!(!told.contains("executes file2"), "{told}");
    // In two parts, of which neither is one by itself.
    let part = |name: &str| yard.path.join(name).to_str().unwrap().to_owned();
    let parts = ["docs/HEAD", "docs/config", "docs/hooks", "docs/objects"].map(part);
    let first: Vec<&str> = parts.iter().flat_map(|path| ["--paths", path]).collect();
    home.ok(&[&["promote", "box"], &first[..]].concat());
    let told = refused(&home, &["--paths", &part("docs/refs")], 4).out();
    assert!(told.contains("executes docs/refs: "), "{told}");
    let status =
        || Command::new("git").args(["status"]).current_dir(yard.path.join("docs")).output().unwrap();
    status();
    assert!(!run.exists(), "git takes it for a part of the repository around it");
    // The control: with leave it is what it was said to be.
    home.ok(&["promote", "box", "--allow-executes"]);
    status();
    assert!(run.exists(), "{:?}", status());
}

/// Nobody misses what is deleted because so much else is told.
#[test]
fn deletions_stand_first_however_much_else_there_is() {
    let home = Home::new();
    let yard = Yard::new(&home, "mkdir old z; echo x > old/precious; echo x > z/last; echo x > file");
    inside(&home, "rm -r old z/last; mkdir many; cd many; for n in $(seq 600); do echo $n > $n; done");
    for arguments in
        [&["diff", "box"][..], &["diff", "box", "--name-status"], &["promote", "box", "--dry-run"]]
    {
        let told = home.ok(arguments);
        let place = |name: &str| told.lines().position(|line| line.contains(name));
        let first = told.lines().position(|line| line.contains("many")).unwrap();
        for gone in ["old/precious", "z/last"] {
            assert!(place(gone).is_some_and(|place| place < first), "{arguments:?}: {gone} {told}");
        }
        // All of them, or how many more there are.
        let shown = told.lines().filter(|line| line.contains("many/")).count();
        assert!(shown >= 600 || told.contains("more"), "{arguments:?}: {shown}");
    }
    let done = home.ok(&["promote", "box"]);
    assert!(done.contains("3 deleted") || done.contains("3 paths deleted"), "{done}");
    assert!(!yard.path.join("old").exists());
}

#[test]
fn one_sandbox_after_another_from_the_same_start() {
    let home = Home::new();
    let text = "one\\ntwo\\nthree\\nfour\\nfive\\nsix\\n";
    let yard = Yard::new(&home, &format!("printf '{text}' > lines; echo x > both; echo x > gone"));
    home.create_in("other", &yard.path);
    let change = |name: &str, script: &str| assert_eq!(home.exec(name, script).code, 0);
    change("box", "sed -i s/one/ONE/ lines; echo box > both; rm gone; echo box > new");
    change("other", "sed -i s/six/SIX/ lines; echo other > both; echo other > gone; echo other > new");
    home.ok(&["promote", "box"]);
    let after = listing(&yard.path);

    let ran = home.zeno(&["promote", "other"]);
    assert_eq!(ran.code, 5, "{ran}");
    for path in ["both", "gone", "new"] {
        assert!(ran.out().contains(&format!("conflict {path}\n")), "{path}: {ran}");
    }
    assert_eq!(listing(&yard.path), after, "nothing of it was done");
    home.ok(&["promote", "other", "--on-conflict", "theirs"]);
    assert_eq!(yard.script("cat lines both new"), "ONE\ntwo\nthree\nfour\nfive\nSIX\nbox\nbox\n");
    // The first cannot be taken back from under the second, but for what the second left alone.
    let ran = home.zeno(&["undo", home.json(&["promotions"])[0]["id"].as_str().unwrap()]);
    assert_eq!(ran.code, 5, "{ran}");
    assert!(ran.err().contains("lines") && !ran.err().contains("both"), "{ran}");
    home.ok(&["undo"]);
    assert_eq!(listing(&yard.path), after);
    home.ok(&["undo"]);
    assert_eq!(yard.script("git status --porcelain"), "");
}

/// Files that run at the next login, in whatever home: asked about, and told by name.
#[test]
fn what_a_login_would_run_needs_leave_wherever_it_is_named() {
    let home = Home::new();
    home.create("box", &[]);
    inside(
        &home,
        "echo evil > ~/.bashrc; mkdir -p ~/.ssh ~/.config/systemd/user; echo k > ~/.ssh/rc; echo u > ~/.config/systemd/user/x.service",
    );
    let told = refused(&home, &["--paths", home.yard().to_str().unwrap()], 4).out();
    // What lies in `~/.ssh` is masked: nobody inside has the real one, and nothing takes its place.
    for name in [".bashrc", ".config/systemd/user/x.service"] {
        assert!(told.contains(&format!("executes {}: ", home.yard().join(name).display())), "{told}");
    }
    assert!(!home.yard().join(".bashrc").exists());
    if is_root() {
        inside(&home, "echo '* * * * * root evil' > /etc/cron.d/zeno-evil");
        let cron = Path::new("/etc/cron.d/zeno-evil");
        let told = refused(&home, &["--paths", cron.to_str().unwrap()], 4).out();
        assert!(
            told.contains("executes /etc/cron.d/zeno-evil: run at a time of day") && !cron.exists(),
            "{told}"
        );
    }
}
