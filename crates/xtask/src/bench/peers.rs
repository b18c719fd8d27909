//! Others who start something isolated, asked once whether they work on this machine.

use std::path::Path;
use std::process::Command;

use super::report::Contender;
use super::sample::{Lane, timed};
use super::{Bench, BenchError};
use crate::files;
use crate::process::{self, ProcessError};
use crate::rig::Scratch;

/// A command line that ends in `true`.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) label: &'static str,
    words: Vec<String>,
}

impl Peer {
    fn new(label: &'static str, words: &[&str]) -> Self {
        Self { label, words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    pub(crate) fn lane<'a>(&self) -> Lane<'a> {
        let mut command = self.command();
        Lane::new(self.label, move || timed(&mut command))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Peers {
    pub(crate) usable: Vec<Peer>,
    pub(crate) absent: Vec<Contender>,
}

impl Peers {
    pub(crate) fn at(&self, label: &str) -> Option<usize> {
        self.usable.iter().position(|peer| peer.label == label)
    }

    fn take(&mut self, peer: Peer) {
        match process::quietly(&mut peer.command()) {
            Ok(()) => self.usable.push(peer),
            Err(error) => self.leave_out(peer.label, &error),
        }
    }

    fn leave_out(&mut self, label: &str, why: &ProcessError) {
        self.absent.push(Contender::Absent { label: label.to_owned(), why: crate::chain(why) });
    }
}

pub(crate) const BWRAP: &str = "bwrap";
pub(crate) const PLAIN: &str = "fork+exec";
pub(crate) const DOCKER: &str = "docker run";

/// The nearest one alone.
pub(crate) fn bwrap() -> Peers {
    let mut peers = Peers::default();
    peers.take(Peer::new(BWRAP, &["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]));
    peers
}

/// Every peer, in the order of the table.
pub(crate) fn all(bench: &Bench, scratch: &Scratch) -> Result<Peers, BenchError> {
    let mut peers = bwrap();
    let namespaces = if rustix::process::geteuid().is_root() { "-mpiunCT" } else { "-Urmpiun" };
    peers.take(Peer::new("unshare", &["unshare", namespaces, "-f", "true"]));
    peers.take(Peer::new(PLAIN, &["true"]));
    for (label, program) in [(DOCKER, "docker"), (PODMAN, "podman")] {
        match bench.guests.run(program) {
            Some(words) => peers.take(Peer { label, words }),
            None => match image(program) {
                Ok(image) => peers.take(Peer::new(label, &[program, "run", "--rm", &image, "true"])),
                Err(error) => peers.leave_out(label, &error),
            },
        }
    }
    match bundle(&scratch.join("crun"), &bench.guests.root()) {
        Ok(folder) => {
            let run = ["crun", "run", "--bundle", &folder, "zeno-bench"];
            let plain = Peer::new("crun run", &run);
            let apart = Peer::new("unshare + crun run", &[&CRUN_APART, &run[..]].concat());
            let works = process::quietly(&mut plain.command()).is_ok();
            peers.take(if works { plain } else { apart });
        }
        Err(BenchError::Process(error)) => peers.leave_out("crun run", &error),
        Err(error) => return Err(error),
    }
    Ok(peers)
}

const PODMAN: &str = "podman run";
/// On a machine that has both versions of cgroups, crun runs only where it does not see the second.
const CRUN_APART: [&str; 6] =
    ["unshare", "--mount", "sh", "-c", "umount /sys/fs/cgroup/unified && exec \"$@\"", "sh"];

/// Any image that is already there: nothing is pulled.
fn image(program: &str) -> Result<String, ProcessError> {
    process::line(Command::new(program).args(["image", "ls", "--quiet"]))
}

/// An OCI bundle over this root, read-only.
fn bundle(folder: &Path, root: &Path) -> Result<String, BenchError> {
    files::make_folder(folder)?;
    process::quietly(Command::new("crun").arg("spec").current_dir(folder))?;
    let path = folder.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&files::read(&path)?).map_err(BenchError::Bundle)?;
    config["root"] = serde_json::json!({ "path": root, "readonly": true });
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = serde_json::json!(["true"]);
    files::write(&path, &config.to_string())?;
    Ok(folder.display().to_string())
}
