//! Users inside the sandbox, from its own passwd and group files.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Who a command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) name: Option<String>,
    pub(super) home: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NoUser {
    #[error("no user `{name}` in the sandbox's /etc/passwd")]
    Unknown { name: String },
    #[error("`{text}` is not a user: write a name, a uid or uid:gid")]
    Malformed { text: String },
}

/// Looks a user up: `name`, `uid` or `uid:gid`.
pub(super) fn find(text: &str) -> Result<Identity, NoUser> {
    resolve(text, &read(PASSWD), &read(GROUP))
}

/// What users and groups are called, by their numbers.
#[derive(Debug)]
pub(super) struct Names {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Names {
    pub(super) fn read() -> Self {
        Self { users: names(&read(PASSWD)), groups: names(&read(GROUP)) }
    }

    pub(super) fn user(&self, uid: u32) -> String {
        self.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    pub(super) fn group(&self, gid: u32) -> String {
        self.groups.get(&gid).cloned().unwrap_or_else(|| gid.to_string())
    }
}

/// Both files have the name first and the number third. The first line of a number counts.
fn names(text: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(number))) = (fields.next(), fields.nth(1).map(str::parse)) {
            names.entry(number).or_insert_with(|| name.to_owned());
        }
    }
    names
}

/// Whoever is inside may have put anything in its place: what is not there, cannot be read or has no end is as good as empty.
fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    match opened.and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

fn resolve(text: &str, passwd: &str, group: &str) -> Result<Identity, NoUser> {
    let (user, wanted_gid) = match text.split_once(':') {
        Some((user, gid)) => {
            let gid = gid.parse().map_err(|_not_a_number| NoUser::Malformed { text: text.to_owned() })?;
            (user, Some(gid))
        }
        None => (text, None),
    };
    let number: Option<u32> = user.parse().ok();
    let line = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| {
        fields.len() >= 6 && (fields[0] == user || number.is_some_and(|uid| fields[2].parse() == Ok(uid)))
    });
    let Some(fields) = line else {
        let uid = number.ok_or_else(|| NoUser::Unknown { name: user.to_owned() })?;
        let gid = wanted_gid.unwrap_or(uid);
        return Ok(Identity { uid, gid, groups: vec![gid], name: None, home: None });
    };
    let (Ok(uid), Ok(own_gid)) = (fields[2].parse(), fields[3].parse()) else {
        return Err(NoUser::Unknown { name: user.to_owned() });
    };
    let name = fields[0];
    let gid = wanted_gid.unwrap_or(own_gid);
    let mut groups = vec![gid];
    for line in group.lines() {
        let fields: Vec<_> = line.split(':').collect();
        if let [_, _, gid, members] = fields[..]
            && members.split(',').any(|member| member == name)
            && let Ok(gid) = gid.parse()
            && !groups.contains(&gid)
        {
            groups.push(gid);
        }
    }
    Ok(Identity { uid, gid, groups, name: Some(name.to_owned()), home: Some(fields[5].to_owned()) })
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
const LONGEST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\nbroken\n";
    const GROUP: &str = "users:x:100:\nwheel:x:10:root,ann\nbroken\n";

    #[test]
    fn users() {
        let ann = resolve("ann", PASSWD, GROUP).unwrap();
        assert_eq!((ann.uid, ann.gid, ann.groups.as_slice()), (1000, 100, &[100, 10][..]));
        assert_eq!(ann.home.as_deref(), Some("/home/ann"));
        assert_eq!(resolve("1000:5", PASSWD, GROUP).unwrap().gid, 5);
        assert_eq!(resolve("4242", PASSWD, GROUP).unwrap().gid, 4242);
        assert!(resolve("bob", PASSWD, GROUP).is_err());
        assert!(resolve("ann:x", PASSWD, GROUP).is_err());
    }
    #[test]
    fn names_of_numbers() {
        let names = Names { users: names(PASSWD), groups: names(GROUP) };
        assert_eq!((names.user(1000), names.user(7)), ("ann".to_owned(), "7".to_owned()));
        assert_eq!((names.group(100), names.group(0)), ("users".to_owned(), "0".to_owned()));
    }
}
