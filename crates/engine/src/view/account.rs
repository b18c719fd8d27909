//! A user whom the machine may not know, put into a view: lines of two files, and a home.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::sandbox::Account;

use super::build::{EMPTY, ViewError};
use super::hide::Hiding;
use super::plan::{Bone, BoneKind, Meta};
use crate::launcher::Rights;

/// Puts the account in. Its home is left as it is where there is one.
pub(super) fn put(hiding: &mut Hiding, account: &Account, rights: Rights) -> Result<(), ViewError> {
    let (passwd, group) = (read(PASSWD)?, read(GROUP)?);
    let home = home(account);
    let ids = match rights {
        // Nobody else is mapped.
        Rights::User { uid, gid } => (uid, gid),
        Rights::Root => ids(account, &home, &passwd, &group).ok_or(ViewError::NoNumber)?,
    };
    let (passwd, group) = lines(account, ids, &passwd, &group);
    for (path, text) in [(PASSWD, passwd), (GROUP, group)] {
        let meta = fs::metadata(path).map_or(Meta { mode: 0o644, ..ROOTS }, |stat| Meta::of(&stat));
        hiding.replace(Path::new(path), text.into_bytes(), meta);
    }
    let own = Meta { uid: ids.0, gid: ids.1, ..ROOTS };
    let above = match rights {
        Rights::Root => ROOTS,
        Rights::User { .. } => own,
    };
    hiding.add_folder(&home, own, above);
    Ok(())
}

/// The account in a tree that holds what no part does: there the files are copies of the machine's.
pub(super) fn put_in_bones(hiding: &Hiding, bones: &mut [Bone]) {
    for bone in bones {
        if let BoneKind::File { bytes, .. } = &mut bone.kind
            && let Some(put) = hiding.file(&bone.path)
        {
            *bytes = put.to_owned();
        }
    }
}

/// A home that is put in has to lie in something that can hold it.
pub(super) fn is_in_a_part(home: PathBuf, parts: &[PathBuf]) -> Result<(), ViewError> {
    let is_held =
        parts.iter().any(|part| home.starts_with(part)) || EMPTY.iter().any(|part| home.starts_with(part));
    if is_held { Ok(()) } else { Err(ViewError::NoHome { home }) }
}

/// Where its home really is.
pub(super) fn home(account: &Account) -> PathBuf {
    real(Path::new(account.home.as_os_str()))
}

/// What is not text in them is of no matter here. A machine can do without either.
fn read(path: &str) -> Result<String, ViewError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(ViewError::Look { path: path.into(), source }),
    }
}

/// Without links on the way, as far as there is anything.
fn real(path: &Path) -> PathBuf {
    for folder in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(folder), path.strip_prefix(folder)) {
            return real.join(rest).components().collect();
        }
    }
    path.to_owned()
}

/// Its own, where the machine knows it; else those of its home; else two that nobody has.
fn ids(account: &Account, home: &Path, passwd: &str, group: &str) -> Option<(u32, u32)> {
    let known = entries(passwd).find(|fields| fields[0] == account.name);
    if let Some(fields) = known
        && let (Ok(uid), Ok(gid)) = (fields[2].parse(), fields[3].parse())
    {
        return Some((uid, gid));
    }
    // One of root's is nobody's who is not root.
    if let Ok(stat) = fs::metadata(home)
        && stat.is_dir()
        && stat.uid() != 0
    {
        return Some((stat.uid(), stat.gid()));
    }
    let taken: Vec<u32> =
        entries(passwd).chain(entries(group)).filter_map(|fields| fields.get(2)?.parse().ok()).collect();
    FREE.into_iter().find(|id| !taken.contains(id)).map(|id| (id, id))
}

/// Both files with the account first, so that its numbers are called by its name.
fn lines(account: &Account, (uid, gid): (u32, u32), passwd: &str, group: &str) -> (String, String) {
    let Account { name, home } = account;
    let rest = |text: &str| -> String {
        let others = text.lines().filter(|line| line.split(':').next() != Some(name));
        others.flat_map(|line| [line, "\n"]).collect()
    };
    let own = format!("{name}:x:{uid}:{gid}::{}:/bin/bash\n", home.display());
    let has_group = entries(group).any(|fields| fields[2].parse() == Ok(gid));
    let groups = if has_group { group.to_owned() } else { format!("{name}:x:{gid}:\n{}", rest(group)) };
    (own + &rest(passwd), groups)
}

/// Lines that are whole enough to be looked at.
fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() >= 4)
}

const ROOTS: Meta = Meta { mode: 0o755, uid: 0, gid: 0, modified: (0, 0) };
const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
/// Where people's numbers begin, and where those of directory services and of other tools do.
const FREE: std::ops::Range<u32> = 1000..60_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada:/home/ada:/bin/zsh\n";
    const GROUPS: &str = "root:x:0:\nada:x:1000:\nvideo:x:1001:ada\n";

    fn account(name: &str, home: &str) -> Account {
        Account { name: name.to_owned(), home: home.into() }
    }

    #[test]
    fn an_unknown_one_has_numbers_that_nobody_has() {
        let user = account("user", "/none/such");
        let ids = ids(&user, Path::new("/none/such"), MACHINE, GROUPS).unwrap();
        assert_eq!(ids, (1002, 1002));
        let (passwd, group) = lines(&user, ids, MACHINE, GROUPS);
        assert_eq!(passwd, format!("user:x:1002:1002::/none/such:/bin/bash\n{MACHINE}"));
        assert_eq!(group, format!("user:x:1002:\n{GROUPS}"));
    }

    #[test]
    fn a_known_one_keeps_its_numbers_and_has_the_home_that_is_asked_for() {
        let ada = account("ada", "/none/such");
        let ids = ids(&ada, Path::new("/none/such"), MACHINE, GROUPS).unwrap();
        assert_eq!(ids, (1000, 1000));
        let (passwd, group) = lines(&ada, ids, MACHINE, GROUPS);
        assert_eq!(passwd, "ada:x:1000:1000::/none/such:/bin/bash\nroot:x:0:0:root:/root:/bin/bash\n");
        assert_eq!(group, GROUPS);
    }

    #[test]
    fn a_home_that_is_there_says_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let stat = fs::symlink_metadata(folder.path()).unwrap();
        let user = account("user", &folder.path().to_string_lossy());
        // Root's is not handed to anybody by it.
        let expected = if stat.uid() == 0 { (1002, 1002) } else { (stat.uid(), stat.gid()) };
        assert_eq!(ids(&user, folder.path(), MACHINE, GROUPS), Some(expected));
    }

    #[test]
    fn a_home_beyond_a_link_is_where_the_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir(top.join("var")).unwrap();
        std::os::unix::fs::symlink("var", top.join("home")).unwrap();
        assert_eq!(real(&top.join("home/user")), top.join("var/user"));
        assert_eq!(real(&top.join("var")), top.join("var"));
    }
}
