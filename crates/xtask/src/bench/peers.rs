//! Others who start something isolated, asked once whether they work on this machine.

use std::path::Path;
use std::process::Command;

use super::BenchError;
use super::report::Contender;
use super::sample::{Lane, timed};
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

/// Every peer, in the order of the table.
pub(crate) fn all(scratch: &Scratch) -> Result<Peers, BenchError> {
    let mut peers = Peers::default();
    peers.take(Peer::new(BWRAP, &["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]));
    let namespaces = if rustix::process::geteuid().is_root() { "-mpiunCT" } else { "-Urmpiun" };
    peers.take(Peer::new("unshare", &["unshare", namespaces, "-f", "true"]));
    peers.take(Peer::new(PLAIN, &["true"]));
    for (label, program) in [(DOCKER, "docker"), ("podman run", "podman")] {
        match image(program) {
            Ok(image) => peers.take(Peer::new(label, &[program, "run", "--rm", &image, "true"])),
            Err(error) => peers.leave_out(label, &error),
        }
    }
    match bundle(&scratch.join("crun")) {
        Ok(folder) => peers.take(Peer::new("crun run", &["crun", "run", "--bundle", &folder, "zeno-bench"])),
        Err(BenchError::Process(error)) => peers.leave_out("crun run", &error),
        Err(error) => return Err(error),
    }
    Ok(peers)
}

/// Any image that is already there: nothing is pulled.
fn image(program: &str) -> Result<String, ProcessError> {
    process::line(Command::new(program).args(["image", "ls", "--quiet"]))
}

/// An OCI bundle over this machine's own root, read-only: the same view as bwrap's.
fn bundle(folder: &Path) -> Result<String, BenchError> {
    files::make_folder(folder)?;
    process::quietly(Command::new("crun").arg("spec").current_dir(folder))?;
    let path = folder.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&files::read(&path)?).map_err(BenchError::Bundle)?;
    config["root"] = serde_json::json!({ "path": "/", "readonly": true });
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = serde_json::json!(["true"]);
    files::write(&path, &config.to_string())?;
    Ok(folder.display().to_string())
}
