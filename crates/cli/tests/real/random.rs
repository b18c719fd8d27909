//! Whatever was done in a sandbox: promoted, reality is what the sandbox showed; undone, it is as before. All of it through
//! the program: contents, permissions, times, attributes, links, and which names are one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::home::{Home, is_root};
use crate::yard::Yard;

/// Each is another series of deeds.
const SEEDS: std::ops::Range<u64> = 0..12;
const DEEDS: usize = 24;

/// Before anything is done. No two files hold the same, and one has a second name.
const BEGIN: &str = "mkdir -p d/d e; echo one > a; printf 'no end' > b; echo two > d/a; printf 'a\\r\\n' > d/b; \
    echo deep > d/d/a; echo deeper > d/d/b; echo blank > 'e/a b'; ln 'e/a b' e/b";

const PLACES: [&str; 17] = [
    "a", "b", "c", "d", "d/a", "d/b", "d/d", "d/d/a", "d/d/b", "e", "e/a b", "e/b", "n", "n/a", "n/d",
    "n/d/x", "l",
];

#[test]
fn what_is_promoted_is_what_was_seen_and_undone_is_as_before() {
    let home = Home::new();
    let yard = Yard::new(&home, BEGIN);
    let before = Tree::of(&yard.path);
    let mut joined = 0;
    for seed in SEEDS {
        let name = format!("box-{seed}");
        home.create_in(&name, &yard.path);
        let script = Chance(seed).script();
        home.exec(&name, &script);
        let seen = home.zeno(&["exec", &name, "--", "python3", "-c", TREE, yard.path.to_str().unwrap()]);
        let seen = Tree::read(&seen.stdout, is_root());
        let done = home.json(&["promote", &name]);
        assert_eq!((&done["status"], done["assessment"].get("caveats")), (&"done".into(), None), "{done}");
        let expected = seen.promoted_over(&before, &done["assessment"]["actions"]);
        joined += expected.families.values().filter(|family| family.len() > 1).count();
        Tree::of(&yard.path).assert_is(&expected, &format!("seed {seed}, promoted:\n{script}"));
        home.ok(&["undo"]);
        Tree::of(&yard.path).assert_is(&before, &format!("seed {seed}, undone:\n{script}"));
        home.ok(&["destroy", "--yes", &name]);
    }
    assert!(joined > 2 * SEEDS.count(), "names of one file were among it: {joined}");
}

/// All that is seen of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tree {
    /// Without inodes.
    nodes: BTreeMap<String, Value>,
    /// For each name of a file, all names of the same file.
    families: BTreeMap<String, BTreeSet<String>>,
}

impl Tree {
    fn of(root: &Path) -> Self {
        let output = Command::new("python3").args(["-c", TREE]).arg(root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self::read(&output.stdout, true)
    }

    /// In an ordinary user's sandbox overlayfs gives each name of a file another inode number. There, what has several names
    /// and looks the same to the nanosecond is one file.
    fn read(text: &[u8], has_inodes: bool) -> Self {
        let mut nodes: BTreeMap<String, Value> = serde_json::from_slice(text).unwrap();
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, node) in &mut nodes {
            let (inode, count) = (node["inode"].take(), node["names"].take());
            if !inode.is_null() {
                let by_inode = has_inodes || count == 1;
                let file = if by_inode { inode.to_string() } else { node.to_string() };
                names.entry(file).or_default().insert(name.clone());
            }
        }
        let families = names.values().flat_map(|all| all.iter().map(|name| (name.clone(), all.clone())));
        Self { families: families.collect(), nodes }
    }

    /// What promoting this makes of what was before: times, and which names are one file, are no change by themselves.
    fn promoted_over(&self, before: &Self, actions: &Value) -> Self {
        let actions = actions.as_array().unwrap();
        let paths = actions.iter().map(|action| action["path"].as_str().unwrap());
        let promoted: BTreeSet<&str> = paths.filter(|path| self.nodes.contains_key(*path)).collect();
        let mut touched = promoted.clone();
        for path in actions.iter().map(|action| action["path"].as_str().unwrap()) {
            if !self.is_folder(path) || !before.is_folder(path) {
                touched.insert(path.rsplit_once('/').map_or(".", |(folder, _)| folder));
            }
        }
        let mut expected = self.clone();
        for (path, node) in &mut expected.nodes {
            let family = self.families.get(path).into_iter().flatten();
            let stays = std::iter::once(path).chain(family).find(|name| !touched.contains(name.as_str()));
            if let Some(stays) = stays {
                node["mtime"] = before.nodes[stays]["mtime"].clone();
            }
        }
        expected.families = self.families.keys().map(|name| (name.clone(), [name.clone()].into())).collect();
        for (families, is_meant) in [(&self.families, true), (&before.families, false)] {
            for (one, other) in
                families.iter().flat_map(|(one, all)| all.iter().map(move |other| (one, other)))
            {
                let is_promoted = promoted.contains(one.as_str()) || promoted.contains(other.as_str());
                if is_promoted == is_meant {
                    expected.unite(one, other);
                }
            }
        }
        expected
    }

    fn unite(&mut self, one: &str, other: &str) {
        let (Some(all), Some(more)) = (self.families.get(one), self.families.get(other)) else { return };
        let all: BTreeSet<String> = all.union(more).cloned().collect();
        for name in &all {
            self.families.insert(name.clone(), all.clone());
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        let mode = self.nodes.get(path).and_then(|node| node["mode"].as_u64());
        mode.is_some_and(|mode| mode & 0o170_000 == 0o040_000)
    }

    #[track_caller]
    fn assert_is(&self, expected: &Self, when: &str) {
        let paths: BTreeSet<&String> = self.nodes.keys().chain(expected.nodes.keys()).collect();
        for path in paths {
            assert_eq!(self.nodes.get(path), expected.nodes.get(path), "{path}, {when}");
            assert_eq!(self.families.get(path), expected.families.get(path), "{path}, {when}");
        }
    }
}

/// The same numbers every time (xorshift).
struct Chance(u64);

impl Chance {
    fn of(&mut self, below: usize) -> usize {
        let mut next = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = next ^ (next >> 27);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn place(&mut self) -> &'static str {
        PLACES[self.of(PLACES.len())]
    }

    /// Something changes in any case.
    fn script(mut self) -> String {
        let deeds: String = (0..DEEDS).map(|_| format!("{{ {}; }} 2>&- || :\n", self.deed())).collect();
        format!("{deeds}echo {} > last\n", self.0)
    }

    /// One thing somebody might do. It may fail: then it did nothing.
    fn deed(&mut self) -> String {
        let (one, other) = (self.place(), self.place());
        let text = ["x", "x\\n", "one\\ntwo\\n", "\\0bin\\0", ""][self.of(5)];
        let mode = ["755", "700", "500", "1777"][self.of(4)];
        match self.of(16) {
            0 => format!("printf '{text}' > '{one}'"),
            1 => format!("printf '{text}' >> '{one}'"),
            2 => format!("rm -rf '{one}'"),
            3 => format!("mkdir '{one}'"),
            4 => format!("chmod {mode} '{one}'"),
            5 => format!("touch -h -d 2001-02-03T04:05:06.789 '{one}'"),
            6 => format!("setfattr -h -n user.note -v '{mode}' '{one}'"),
            7 => format!("setfattr -h -x user.note '{one}'"),
            8 => format!("mv -T '{one}' '{other}'"),
            9 => format!("cp -a '{one}' '{other}'"),
            10 => format!("ln -s '{one}' '{other}'"),
            11 => format!("mv -T '{one}' swap && mv -T '{other}' '{one}' && mv -T swap '{other}'"),
            12 => format!("ln '{one}' '{other}'"),
            _ => format!("ln -f '{one}' '{other}'"),
        }
    }
}

const TREE: &str = include_str!("payloads/tree.py");
