//! What a user sees who asks for what cannot be: the reason, what to do, the exit code; and nothing is left of it.

use std::fs;

use crate::home::{Home, Ran, is_root};
use crate::wait::until;

#[test]
fn mistakes_on_the_command_line() {
    let home = Home::new();
    home.create("taken", &[]);
    let before = home.all_traces();
    // Each by itself leaves nothing.
    let shown = |arguments: &[&str]| {
        let shown = home.plain(&home.zeno(arguments));
        assert_eq!(home.all_traces(), before, "{arguments:?}");
        shown
    };
    insta::assert_snapshot!(shown(&["run", "--colour", "--", "true"]), @"
    ------- stderr -------
    error: unexpected argument '--colour' found

      tip: a similar argument exists: '--consumer'
      tip: to pass '--colour' as a value, use '-- --colour'

    Usage: zeno run [OPTIONS] [--] <CMD>...

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["create", "--ttl", "soon"]), @"
    ------- stderr -------
    error: invalid value 'soon' for '--ttl <TIME>': `soon` is not a duration: write for example 90s, 15m, 1h30m or 7d

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["create", "--memory", "0"]), @"
    ------- stderr -------
    error: invalid value '0' for '--memory <SIZE>': `0` is not a size: write for example 512MiB, 4G or 100kB

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["create", "--name", "No Good"]), @"
    ------- stderr -------
    error: invalid value 'No Good' for '--name <NAME>': `No Good` is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit, and not in the form of an id

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["create", "--no-workspace", "--name", "taken"]), @"
    ------- stderr -------
    error: the name `taken` is taken by ID
      try: choose another name, or remove that sandbox: `zeno destroy taken`
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["get", "take"]), @"
    ------- stderr -------
    error: there is no sandbox `take`
      try: did you mean `taken`?
      try: see which there are: `zeno list`
    [exit 6]
    ");
    insta::assert_snapshot!(shown(&["destroy", "nobody"]), @"
    ------- stderr -------
    error: there is no sandbox `nobody`
      try: see which there are: `zeno list`
    [exit 6]
    ");
    insta::assert_snapshot!(shown(&["exec", "nobody", "--", "true"]), @"
    ------- stderr -------
    error: there is no sandbox `nobody`
      try: see which there are: `zeno list`
    [exit 125]
    ");
    insta::assert_snapshot!(shown(&["exec", "taken", "--", "no-such-program"]), @"
    ------- stderr -------
    zeno: no command `no-such-program` in the sandbox
    [exit 127]
    ");
    insta::assert_snapshot!(shown(&["exec", "-d", "taken", "--", "no-such-program"]), @"
    ------- stderr -------
    zeno: no command `no-such-program` in the sandbox
    [exit 127]
    ");
    insta::assert_snapshot!(shown(&["kill", "taken", "99"]), @"
    ------- stderr -------
    error: no command 99 runs or ran in this sandbox
    [exit 6]
    ");
    insta::assert_snapshot!(shown(&["cp", "a", "b"]), @"
    ------- stderr -------
    error: cannot copy within this machine: one side has to be SANDBOX:/PATH
      try: zeno cp --help
    [exit 2]
    ");
    insta::assert_snapshot!(shown(&["run", "--workspace", "no/such/folder", "--", "true"]), @"
    ------- stderr -------
    error: cannot use `no/such/folder` as the workspace
      because: No such file or directory (os error 2)
    [exit 125]
    ");
    insta::assert_snapshot!(shown(&["get", "nobody", "--json"]), @r#"
    ------- stderr -------
    {"code":"not_found","status":404,"detail":"there is no sandbox `nobody`","hints":["see which there are: `zeno list`"]}
    [exit 6]
    "#);
}

#[test]
fn a_workspace_that_vanished() {
    let home = Home::new();
    let work = home.yard().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("file"), "frozen").unwrap();
    home.ok(&["create", "--workspace", "work", "--name", "box"]);
    fs::remove_dir_all(&work).unwrap();
    assert!(home.ok(&["status", "box"]).contains("ago, the real folder is gone"));
    assert_eq!(home.exec("box", "cat work/file").out(), "frozen");
    home.ok(&["stop", "box"]);
    let before = home.all_traces();
    insta::assert_snapshot!(home.plain(&home.zeno(&["start", "box"])), @"
    ------- stderr -------
    error: its workspace `FOLDER/yard/work` is gone
      try: put the folder back: the sandbox still has all that it wrote
    [exit 6]
    ");
    assert_eq!(home.all_traces(), before);
    // Who stands in it finds it gone, too.
    let lost = home.zeno_by(
        &["sh", "-c", "mkdir lost; cd lost; rmdir ../lost; exec \"$@\"", "sh"],
        &["run", "--", "true"],
    );
    insta::assert_snapshot!(home.plain(&lost), @"
    ------- stderr -------
    error: cannot tell the current folder
      because: No such file or directory (os error 2)
    [exit 125]
    ");
    assert_eq!(home.all_traces(), before);
    fs::create_dir(&work).unwrap();
    home.ok(&["start", "box"]);
    assert_eq!(home.exec("box", "cat work/file").out(), "frozen");
}

/// Root can mount a small disk that the daemon sees; everybody can give a sandbox one.
#[test]
fn a_full_disk() {
    if is_root() {
        a_full_disk_of_zenos_own();
    }
    let home = Home::new();
    home.create("box", &["--disk", "2MiB"]);
    home.create("other", &[]);
    let ran = home.exec("box", "dd if=/dev/zero of=/var/tmp/zeno-real-big bs=64k");
    assert!(ran.err().contains("No space left on device"), "{ran}");
    assert_eq!(
        home.exec("box", "rm /var/tmp/zeno-real-big && echo text > /var/tmp/file && cat /var/tmp/file").out(),
        "text\n"
    );
    assert_eq!(
        home.exec("other", "head -c 4M /dev/zero > /var/tmp/big && wc -c < /var/tmp/big").out(),
        "4194304\n"
    );
}

fn a_full_disk_of_zenos_own() {
    let home = Home::on_small_disk();
    home.create("box", &[]);
    let ran = home.exec("box", "dd if=/dev/zero of=/var/tmp/zeno-real-big bs=64k");
    assert!(ran.err().contains("No space left on device"), "{ran}");
    let before = home.all_traces();
    // Whether the store or the sandbox's own files run out first is chance.
    let check = |ran: &Ran, code: i32| {
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.err().contains("No space left on device") || ran.err().contains("disk is full"), "{ran}");
        assert!(ran.err().contains("try: make room"), "{ran}");
    };
    // One that was made ahead of time needs no more room.
    let mut made = Vec::new();
    let refused = (0..9).find_map(|number| {
        let name = format!("more{number}");
        let ran = home.zeno(&["create", "--no-workspace", "--name", &name]);
        if ran.code == 0 {
            made.push(name);
        }
        (ran.code != 0).then_some(ran)
    });
    check(&refused.expect("a full disk is noticed"), 7);
    check(&home.run(&[], "true"), 125);
    for name in made {
        home.ok(&["destroy", &name]);
    }
    assert_eq!(home.all_traces(), before);
    home.ok(&["destroy", "box"]);
    home.create("again", &[]);
    until("what was given up to be recorded so", || {
        (!home.ok(&["list"]).contains("provisioning")).then_some(())
    });
}
