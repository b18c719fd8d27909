//! What overlayfs, or a tool that copies layers, may note in an upper: made by hand here.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::XattrFlags;

use super::{Bed, told};
use crate::capture::layer::Flavour;

fn flavour() -> Flavour {
    if rustix::process::geteuid().is_root() { Flavour::Trusted } else { Flavour::User }
}

fn mark(path: &Path, name: &std::ffi::CStr, value: &[u8]) {
    rustix::fs::fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()).unwrap();
}

#[test]
fn whiteouts_that_are_files() {
    let bed = Bed::new(&[("d/gone", "gone\n"), ("d/kept", "kept\n"), ("e/empty", "text\n")]);
    for folder in ["d", "e"] {
        fs::create_dir_all(bed.upper().join(folder)).unwrap();
    }
    for file in ["d/gone", "e/empty"] {
        fs::write(bed.upper().join(file), "").unwrap();
        mark(&bed.upper().join(file), flavour().whiteout(), b"y");
    }
    mark(&bed.upper().join("d"), flavour().opaque(), b"x");
    // Without the folder's leave, the other is a file like any.
    assert_eq!(told(&bed.diff()), ["D d/gone", "M e/empty contents"]);
}

#[test]
fn a_file_of_which_only_the_metadata_was_copied() {
    let bed = Bed::new(&[("a", "alpha\n")]);
    fs::create_dir_all(bed.upper()).unwrap();
    let stub = bed.upper().join("a");
    File::create(&stub).unwrap().set_len(6).unwrap();
    mark(&stub, flavour().metacopy(), b"");
    assert_eq!(told(&bed.diff()), [""; 0]);
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(told(&bed.diff()), ["M a 644-755"]);
    assert_eq!(
        String::from_utf8(bed.patch()).unwrap(),
        "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
    );
}

#[test]
fn attributes() {
    let bed = Bed::new(&[("a", "alpha\n"), ("b", "beta\n")]);
    mark(&bed.lower().join("b"), c"user.same", b"1");
    fs::create_dir_all(bed.upper()).unwrap();
    for (file, text) in [("a", "alpha\n"), ("b", "beta\n")] {
        fs::write(bed.upper().join(file), text).unwrap();
    }
    mark(&bed.upper().join("a"), c"user.note", b"1");
    mark(&bed.upper().join("b"), c"user.same", b"1");
    assert_eq!(told(&bed.diff()), ["M a user.note"]);
    mark(&bed.upper().join("b"), c"user.same", b"2");
    assert_eq!(told(&bed.diff()), ["M a user.note", "M b user.same"]);
}
