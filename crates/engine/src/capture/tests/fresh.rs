//! Written, then frozen at once: the new state shows, every time, and no older one changes.

use std::os::unix::fs::PermissionsExt;

use super::Lab;
use super::tree::{assert_current, assert_same, merged};

#[test]
fn a_thousand_edits_each_show_at_once() {
    let mut lab = Lab::new();
    for number in 0..20 {
        lab.write(format!("src/{number}/file"), "first");
    }
    for turn in 0..1000_u32 {
        let folder = turn % 20;
        let path = lab.path(format!("src/{folder}/file"));
        match turn % 6 {
            0 => std::fs::write(&path, format!("in place {turn}")).unwrap(),
            1 => {
                let draft = lab.path("draft");
                std::fs::write(&draft, format!("renamed over {turn}")).unwrap();
                std::fs::rename(draft, &path).unwrap();
            }
            2 => lab.write(format!("src/{folder}/new/{turn}/file"), "new"),
            3 => std::fs::remove_file(&path).unwrap(),
            4 => {
                lab.write(format!("src/{folder}/file"), "back again");
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600 + turn % 8)).unwrap();
            }
            _ => {
                let (from, to) = (lab.path(format!("src/{folder}")), lab.path("moved"));
                std::fs::rename(&from, &to).unwrap();
                std::fs::rename(&to, &from).unwrap();
                lab.write(format!("src/{folder}/file"), format!("after the move {turn}"));
            }
        }
        let (holder, frozen) = lab.freeze();
        assert_current(&frozen, &lab.work());
        // Every third stays for a while, so that layers pile up and melt again.
        if turn % 3 != 0 {
            lab.captures.release(holder);
        }
        if turn % 100 == 99 {
            lab.captures.sweep(&[]).unwrap();
        }
    }
}

#[test]
fn what_is_pinned_never_changes() {
    let mut lab = Lab::new();
    for number in 0..10 {
        lab.write(format!("a/b/{number}"), format!("text {number}"));
    }
    let mut kept = Vec::new();
    for turn in 0..40 {
        let (_, frozen) = lab.freeze();
        assert_current(&frozen, &lab.work());
        kept.push((merged(&frozen), frozen));
        match turn % 8 {
            0 => lab.write("a/b/0", format!("edited {turn}")),
            1 => std::fs::remove_file(lab.path(format!("a/b/{}", turn % 7 + 1))).unwrap_or_default(),
            2 => std::fs::rename(lab.path("a/b"), lab.path("a/c")).unwrap(),
            3 => std::fs::rename(lab.path("a/c"), lab.path("a/b")).unwrap(),
            4 => std::os::unix::fs::symlink("b", lab.path(format!("a/link{turn}"))).unwrap(),
            5 => std::fs::set_permissions(lab.path("a"), PermissionsExt::from_mode(0o700 + turn)).unwrap(),
            6 => std::fs::remove_dir_all(lab.path("a/b")).unwrap(),
            _ => (0..10).for_each(|number| lab.write(format!("a/b/{number}"), format!("anew {turn}"))),
        }
        for (tree, frozen) in &kept {
            assert_same(tree, &merged(frozen));
        }
    }
}

#[test]
fn layers_melt_when_nobody_holds_them() {
    let mut lab = Lab::new();
    lab.write("file", "0");
    let mut holders = Vec::new();
    for turn in 0..30 {
        lab.write("file", turn.to_string());
        lab.write(format!("folder/{turn}"), "");
        let (holder, frozen) = lab.freeze();
        assert!(frozen.parts[0].layers.len() <= 14, "deltas are merged");
        assert_current(&frozen, &lab.work());
        holders.push(holder);
    }
    holders.into_iter().for_each(|holder| lab.captures.release(holder));
    let (_, frozen) = lab.freeze();
    assert_eq!(frozen.parts[0].layers.len(), 1);
    assert_current(&frozen, &lab.work());
    let layers = frozen.parts[0].layers[0].parent().unwrap();
    assert_eq!(std::fs::read_dir(layers).unwrap().count(), 1, "unused layers are removed");
}

#[test]
fn a_restart_sees_what_changed_meanwhile_and_keeps_what_was_adopted() {
    let mut lab = Lab::new();
    (0..50).for_each(|number| lab.write(format!("{number}/file"), "first"));
    let (holder, frozen) = lab.freeze();
    let before = merged(&frozen);
    lab.restart();
    lab.write("7/file", "changed while nobody watched");
    std::fs::remove_dir_all(lab.path("8")).unwrap();
    let (_, second) = lab.freeze();
    assert_current(&second, &lab.work());
    lab.captures.adopt(holder, &frozen).unwrap();
    lab.captures.sweep(&[holder]).unwrap();
    assert_same(&before, &merged(&frozen));
    lab.captures.release(holder);
    let (_, third) = lab.freeze();
    assert_current(&third, &lab.work());
    assert_eq!(third.parts[0].layers.len(), 1);
}

#[test]
fn what_an_earlier_daemon_left_goes_with_its_last_holder() {
    let mut lab = Lab::new();
    lab.write("file", "first");
    let (holder, frozen) = lab.freeze();
    lab.write("file", "second");
    let (_, second) = lab.freeze();
    assert_eq!(second.parts[0].layers.len(), 2);
    lab.restart();
    lab.captures.adopt(holder, &frozen).unwrap();
    lab.captures.sweep(&[holder]).unwrap();
    lab.captures.release(holder);
    let layers = frozen.parts[0].layers[0].parent().unwrap();
    assert_eq!(std::fs::read_dir(layers).unwrap().count(), 1, "folded without a freeze");
    let (_, third) = lab.freeze();
    assert_current(&third, &lab.work());
    let gone = lab.captures.adopt(holder, &second);
    assert!(matches!(gone, Err(super::super::CaptureError::LayerGone { .. })), "{gone:?}");
}

#[test]
fn a_flood_of_changes_between_two_looks_is_not_lost() {
    let mut lab = Lab::new();
    lab.write("folder/first", "");
    lab.freeze();
    // More than the kernel's queue holds (16,384), faster than it is emptied.
    for number in 0..20_000 {
        std::fs::File::create(lab.path(format!("folder/{number}"))).unwrap();
    }
    lab.write("folder/first", "last");
    let (_, frozen) = lab.freeze();
    assert_current(&frozen, &lab.work());
}
