//! The machine the figures come from.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::{Apart, Bench, BenchError};
use crate::files;
use crate::process;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory: String,
    pub(crate) kernel: String,
    /// File system of the scratch folder.
    pub(crate) disk: String,
    /// Who ran it: sandboxes are made differently for root.
    pub(crate) user: String,
    /// The load when it began; above the number of cores the figures are noise.
    pub(crate) load: String,
    pub(crate) versions: Vec<Version>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) program: String,
    /// Absent where the program is.
    pub(crate) version: Option<String>,
}

impl Machine {
    /// What of this run stands beside a row that is published with those of another.
    pub(crate) fn apart(&self) -> Apart {
        let commit = self.versions.iter().find(|version| version.program == "commit");
        let commit = commit.and_then(|commit| commit.version.clone()).unwrap_or_else(|| "unknown".to_owned());
        Apart { date: self.date.clone(), commit, load: self.load.clone() }
    }

    pub(crate) fn look(bench: &Bench) -> Result<Self, BenchError> {
        let cpuinfo = files::read(Path::new("/proc/cpuinfo"))?;
        let meminfo = files::read(Path::new("/proc/meminfo"))?;
        let load = files::read(Path::new("/proc/loadavg"))?;
        let memory = value(&meminfo, "MemTotal").trim_end_matches(" kB");
        let kilobytes: u64 = memory.parse().expect("the kernel's own form");
        let disk =
            process::line(Command::new("stat").args(["--file-system", "--format=%T"]).arg(&bench.rig.place))?;
        Ok(Self {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            processor: value(&cpuinfo, "model name").to_owned(),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory: model::units::Size(kilobytes * 1024).rough(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            disk,
            user: if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user" }.to_owned(),
            load: load.split(' ').next().unwrap_or("").to_owned(),
            versions: versions(bench),
        })
    }
}

fn versions(bench: &Bench) -> Vec<Version> {
    let zeno = bench.rig.zeno.display().to_string();
    let docker = bench.guests.command("docker");
    let docker: Vec<&str> =
        docker.iter().map(String::as_str).chain(["version", "--format", "{{.Server.Version}}"]).collect();
    let programs: [(&str, &[&str]); 12] = [
        ("zeno", &[&zeno, "version"]),
        ("commit", &["git", "-C", &files::root().display().to_string(), "describe", "--always", "--dirty"]),
        ("rustc", &["rustc", "--version"]),
        ("bwrap", &["bwrap", "--version"]),
        ("unshare", &["unshare", "--version"]),
        ("docker", &docker),
        ("podman", &["podman", "--version"]),
        ("crun", &["crun", "--version"]),
        ("npm", &["npm", "--version"]),
        ("git", &["git", "--version"]),
        ("btrfs", &["mkfs.btrfs", "--version"]),
        ("xfs", &["mkfs.xfs", "-V"]),
    ];
    let version = |words: &[&str]| process::line(Command::new(words[0]).args(&words[1..])).ok();
    let shown = |(program, words): &(&str, &[&str])| Version {
        program: (*program).to_owned(),
        version: version(words),
    };
    programs.iter().map(shown).collect()
}

/// The value of `key : value` in a file of such lines.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
}
