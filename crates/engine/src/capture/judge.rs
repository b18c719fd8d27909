//! How each entry of a captured directory is to be held: copied, linked, read live, or left out.

use model::mask::NameMask;
use rustix::fs::FileType;

use super::Live;
use super::copy::Means;
use super::files::{Seen, Stat, join};
use super::git::Rules;
use super::index::{Absence, Entry, Role};

/// What an entry should become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Dir(Role),
    File(Means),
    /// A symlink or a fifo, made anew.
    Special,
    /// An ignored folder, read live.
    Live,
    Masked(u32),
    Absent(Absence),
}

/// The directory whose entries are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench<'a> {
    pub(super) path: &'a [u8],
    pub(super) role: Role,
    pub(super) rules: Option<&'a Rules>,
    pub(super) live: Live,
    pub(super) masks: &'a [NameMask],
}

/// A judgement, and whether it may change with git's index alone.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) fate: Fate,
    pub(super) leans_on_index: bool,
}

impl Bench<'_> {
    pub(super) fn judge(&self, name: &[u8], seen: &Seen) -> Judgement {
        let settled = |fate| Judgement { fate, leans_on_index: false };
        if seen.is_mount {
            return settled(Fate::Absent(Absence::Mount));
        }
        let in_git = !matches!(self.role, Role::Work | Role::Ignored);
        match seen.stat.file_type() {
            FileType::Directory if in_git => settled(Fate::Dir(self.git_folder(name))),
            FileType::Directory if name == b".git" => settled(Fate::Dir(Role::Git)),
            FileType::Directory => self.judge_folder(name),
            FileType::RegularFile if in_git => settled(self.judge_git_file(name)),
            FileType::RegularFile => self.judge_file(name, &seen.stat),
            FileType::Symlink if !in_git => self.judge_symlink(name),
            FileType::Symlink | FileType::Fifo => settled(Fate::Special),
            FileType::Socket if in_git => settled(Fate::Absent(Absence::Transient)),
            FileType::Socket => settled(Fate::Absent(Absence::Socket)),
            FileType::BlockDevice | FileType::CharacterDevice | FileType::Unknown => {
                settled(Fate::Absent(Absence::Device))
            }
        }
    }

    fn judge_folder(&self, name: &[u8]) -> Judgement {
        let path = join(self.path, name);
        if !self.ignores(&path, true) {
            return Judgement { fate: Fate::Dir(Role::Work), leans_on_index: false };
        }
        let fate = match self.live {
            Live::Redirect if !self.tracks(&path, true) => Fate::Live,
            Live::Redirect | Live::Stubs | Live::Copy => Fate::Dir(Role::Ignored),
        };
        Judgement { fate, leans_on_index: true }
    }

    fn judge_file(&self, name: &[u8], stat: &Stat) -> Judgement {
        let path = join(self.path, name);
        if let Some(judgement) = self.judge_secret(name, &path) {
            return judgement;
        }
        if !self.ignores(&path, false) {
            return Judgement { fate: Fate::File(Means::Copy), leans_on_index: false };
        }
        let fate = if self.tracks(&path, false) {
            Fate::File(Means::Copy)
        } else {
            match self.live {
                Live::Redirect if stat.size > LARGEST_IGNORED_COPY => Fate::Absent(Absence::Large),
                Live::Stubs
                    if self.role == Role::Ignored && path.len() < LONGEST_REDIRECT
                        || stat.size > LARGEST_STUBBED_COPY =>
                {
                    Fate::File(Means::Stub { path })
                }
                Live::Redirect | Live::Stubs | Live::Copy => Fate::File(Means::Copy),
            }
        };
        Judgement { fate, leans_on_index: true }
    }

    fn judge_symlink(&self, name: &[u8]) -> Judgement {
        self.judge_secret(name, &join(self.path, name))
            .unwrap_or(Judgement { fate: Fate::Special, leans_on_index: false })
    }

    /// Is it a secret by its name? Then only git tracking it makes it visible.
    fn judge_secret(&self, name: &[u8], path: &[u8]) -> Option<Judgement> {
        let mask = self.masks.iter().position(|mask| mask.matches(name))?;
        (!self.tracks(path, false)).then(|| Judgement {
            fate: Fate::Masked(u32::try_from(mask).expect("the mask list is short")),
            leans_on_index: true,
        })
    }

    fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        self.role == Role::Ignored || self.rules.is_some_and(|rules| rules.ignore(path, is_dir))
    }

    fn tracks(&self, path: &[u8], is_dir: bool) -> bool {
        self.rules.is_some_and(|rules| rules.repository.tracks(path, is_dir))
    }

    fn git_folder(&self, name: &[u8]) -> Role {
        match (self.role, name) {
            (Role::Git, b"objects") => Role::GitObjects,
            (Role::Git, b"refs") | (Role::GitRefs, _) => Role::GitRefs,
            (Role::Git, b"worktrees" | b"modules") => Role::GitDirs,
            (Role::Git, b"lfs") => Role::GitLfs,
            (Role::GitDirs, _) => Role::Git,
            (Role::GitObjects, b"pack") => Role::GitPack,
            (Role::GitObjects, [a, b]) if is_hex(&[*a, *b]) => Role::GitFanout,
            (Role::GitLfs, b"objects") | (Role::GitLfsObjects, _) => Role::GitLfsObjects,
            // A submodule's name may hold slashes: `modules/a/b` is the git directory and `modules/a` only looks
            // like one, so objects further down are copied instead of linked. Right all the same.
            _ => Role::GitInside,
        }
    }

    fn judge_git_file(&self, name: &[u8]) -> Fate {
        let is_lock = name.ends_with(b".lock") && matches!(self.role, Role::Git | Role::GitRefs);
        let is_object = match self.role {
            Role::GitFanout => matches!(name.len(), 38 | 62) && is_hex(name),
            Role::GitPack => name.starts_with(b"pack-"),
            Role::GitLfsObjects => name.len() == 64 && is_hex(name),
            _ => false,
        };
        match (is_lock, is_object) {
            (true, _) => Fate::Absent(Absence::Transient),
            (false, true) => Fate::File(Means::Link),
            (false, false) => Fate::File(Means::Copy),
        }
    }
}

impl Fate {
    /// Is `entry` what this fate would make of a file that looks like `stat`?
    pub(super) fn is_met_by(&self, entry: &Entry, stat: &Stat) -> bool {
        match (self, entry) {
            (Self::File(Means::Copy), Entry::File { stat: old, .. })
            // A copy serves where a stub would do.
            | (Self::File(Means::Stub { .. }), Entry::File { stat: old, .. } | Entry::Stub(old)) => old == stat,
            // Links come and go with our own layers, which moves link count and change time.
            (Self::File(Means::Link), Entry::Linked(old)) => {
                (old.ino, old.size, old.mtime, old.mode) == (stat.ino, stat.size, stat.mtime, stat.mode)
            }
            (Self::Special, Entry::Symlink(old) | Entry::Fifo(old)) => old == stat,
            // What lies in a live folder may change without concerning the layer.
            (Self::Live, Entry::Live(old)) => (old.mode, old.uid, old.gid) == (stat.mode, stat.uid, stat.gid),
            (Self::Masked(mask), Entry::Masked(old)) => mask == old,
            (Self::Absent(why), Entry::Absent { why: old, .. }) => why == old,
            // It could not be read. It is worth trying again when it changed.
            (Self::File(_), Entry::Absent { why: Absence::Unreadable, stat: old }) => old == stat,
            (Self::Dir(_), Entry::Absent { why: Absence::Unreadable, stat: old }) => old.ctime == stat.ctime,
            _ => false,
        }
    }
}

fn is_hex(name: &[u8]) -> bool {
    name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Root's mounts have no stubs, so an ignored file beside captured ones is copied up to this size.
const LARGEST_IGNORED_COPY: u64 = 64 * 1024 * 1024;
const LARGEST_STUBBED_COPY: u64 = 1024 * 1024;
/// A redirect must fit into the extended attributes of one ext4 block.
const LONGEST_REDIRECT: usize = 3000;
