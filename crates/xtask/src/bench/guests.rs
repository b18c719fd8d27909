//! Peers that are here for one run only: installed, their daemons started, a tiny image of this machine's own busybox
//! given to them. All but the packages is gone when the run is over.
//!
//! Never pulls anything, and never uses a store of the user's: docker and podman get one in a scratch folder.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Signal};

use super::BenchError;
use crate::files::{self, FileError};
use crate::packages::{self, Consent, Need};
use crate::process::{self, ProcessError};
use crate::rig::{Rig, RigError, Scratch, interrupt, zeno};

const NEEDS: &[Need] = &[
    Need { program: "bwrap", package: "bubblewrap", why: "the peer that speed is compared with" },
    Need { program: "dockerd", package: "docker.io", why: "`docker run` is a peer" },
    Need { program: "podman", package: "podman", why: "`podman run` is a peer" },
    Need { program: "crun", package: "crun", why: "`crun run` is a peer" },
    Need { program: "busybox", package: "busybox-static", why: "the image that docker and podman run" },
    Need { program: "mkfs.btrfs", package: "btrfs-progs", why: "a reflink copy on btrfs is a peer" },
    Need { program: "mkfs.xfs", package: "xfsprogs", why: "a reflink copy on xfs is a peer" },
];

const IMAGE: &str = "zeno-bench-peer";
/// Where containers of our docker daemon are put, so that what it leaves can be told from others'.
const CGROUP: &str = "zeno-bench-peers";
const PATIENCE: Duration = Duration::from_secs(60);

/// Who else is wanted.
#[derive(Debug, clap::Args)]
pub(crate) struct Invitation {
    /// Install docker, podman, crun, btrfs and xfs where they are missing, for peers to compare with
    #[arg(long)]
    install_peers: bool,
    /// Install without asking
    #[arg(long, requires = "install_peers")]
    yes: bool,
}

impl Invitation {
    pub(crate) fn guests(&self, rig: &Rig) -> Result<Guests, BenchError> {
        if self.install_peers { Guests::invite(rig, Consent::of(self.yes)) } else { Ok(Guests::default()) }
    }
}

/// Nobody, unless invited.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    engines: Vec<Engine>,
    dockerd: Option<Child>,
    /// Last: what is above lives in it.
    scratch: Option<Scratch>,
}

/// One that runs containers from images.
#[derive(Debug)]
struct Engine {
    program: &'static str,
    /// The program with what it needs to find its own store.
    words: Vec<String>,
    /// What its `run` needs here.
    options: &'static [&'static str],
}

impl Guests {
    /// One that cannot be had is left out, and the table says why it is absent.
    fn invite(rig: &Rig, consent: Consent) -> Result<Self, BenchError> {
        packages::ensure(NEEDS, consent)?;
        let scratch = Scratch::new(rig)?;
        let image = image(&scratch)?;
        let mut guests = Self::default();
        for made in [guests.docker(&scratch), podman(&scratch)] {
            let done = made.and_then(|engine| {
                engine.import(&image)?;
                guests.engines.push(engine);
                Ok(())
            });
            interrupt::check()?;
            if let Err(error) = done {
                eprintln!("left out: {}", crate::chain(&error));
            }
        }
        guests.scratch = Some(scratch);
        Ok(guests)
    }

    /// The words that begin every command of this program.
    pub(crate) fn command(&self, program: &'static str) -> Vec<String> {
        self.engine(program).map_or_else(|| vec![program.to_owned()], |engine| engine.words.clone())
    }

    /// The words that run `true` in a container, if this one was invited.
    pub(crate) fn run(&self, program: &'static str) -> Option<Vec<String>> {
        let engine = self.engine(program)?;
        let more = [&["run", "--rm"], engine.options, &[IMAGE, "true"]].concat();
        Some(engine.words.iter().cloned().chain(more.into_iter().map(str::to_owned)).collect())
    }

    /// The root folder of containers without an image: busybox's if there is one, else this machine's own.
    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.as_ref().map_or_else(|| PathBuf::from("/"), |scratch| scratch.join("root"))
    }

    pub(crate) fn note(&self) -> Option<String> {
        let invited = !self.engines.is_empty();
        invited.then(|| {
            "docker, podman and crun run a busybox, the first two without a network, as zeno does".to_owned()
        })
    }

    fn engine(&self, program: &str) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.program == program)
    }

    /// A daemon of our own even where one runs: what it leaves is ours to remove. It gets no bridge and touches no
    /// firewall.
    fn docker(&mut self, scratch: &Scratch) -> Result<Engine, BenchError> {
        let at = |name: &str| scratch.join("docker").join(name).display().to_string();
        files::make_folder(&scratch.join("docker"))?;
        let socket = format!("unix://{}", at("sock"));
        let log = scratch.join("docker/log");
        let log = File::create(&log).map_err(|source| FileError::Write { path: log, source })?;
        let mut command = Command::new("dockerd");
        command
            .args(["--host", &socket, "--data-root", &at("data"), "--exec-root", &at("run")])
            .args(["--pidfile", &at("pid"), "--cgroup-parent", &format!("/{CGROUP}")])
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"])
            // Ctrl-C is for us; we end it after its containers.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().map_err(|source| ProcessError::start(&command, source))?;
        let child = self.dockerd.insert(child);
        let words = ["docker", "--host", &socket].map(str::to_owned).to_vec();
        let engine = Engine { program: "docker", words, options: &["--network", "none"] };
        let deadline = Instant::now() + PATIENCE;
        loop {
            interrupt::check()?;
            let asked = process::quietly(engine.command().arg("version"));
            let ended = child.try_wait().map_err(|source| ProcessError::wait(&command, source))?;
            match (asked, ended) {
                (Ok(()), None) => return Ok(engine),
                (Err(error), Some(_)) => return Err(error.into()),
                (Err(error), None) if Instant::now() > deadline => return Err(error.into()),
                (Ok(()) | Err(_), _) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn end(&mut self) -> Result<(), BenchError> {
        for engine in self.engines.drain(..) {
            process::quietly(engine.command().args(["image", "rm", IMAGE]))?;
        }
        if let Some(scratch) = &self.scratch {
            unmount(scratch.path())?;
        }
        let Some(mut dockerd) = self.dockerd.take() else { return Ok(()) };
        if dockerd.try_wait().map_err(wait_error)?.is_none() {
            zeno::end(i32::try_from(dockerd.id()).expect("the kernel's ids are small"), Signal::TERM)?;
            dockerd.wait().map_err(wait_error)?;
        }
        Ok(remove_cgroups()?)
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("left behind by a peer: {}", crate::chain(&error));
        }
    }
}

impl Engine {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    fn import(&self, image: &Path) -> Result<(), BenchError> {
        Ok(process::quietly(self.command().arg("import").arg(image).arg(IMAGE))?)
    }
}

fn podman(scratch: &Scratch) -> Result<Engine, BenchError> {
    let at = |name: &str| scratch.join("podman").join(name).display().to_string();
    // Its own defaults are more than some machines let even root ask for.
    let most = |resource, enough| {
        rustix::process::getrlimit(resource).maximum.map_or(enough, |most| most.min(enough))
    };
    let (files, processes) = (most(Resource::Nofile, 20_000), most(Resource::Nproc, 30_000));
    let settings = format!(
        "[containers]\ndefault_ulimits = [\"nofile={files}:{files}\", \"nproc={processes}:{processes}\"]\n"
    );
    files::write(&scratch.join("podman/containers.conf"), &settings)?;
    let settings = format!("CONTAINERS_CONF={}", at("containers.conf"));
    let words = ["env", &settings, "podman", "--root", &at("root"), "--runroot", &at("run")];
    let more = ["--tmpdir", &at("tmp"), "--cgroup-manager", "cgroupfs", "--events-backend", "file"];
    // Its own choice, crun, refuses a machine that has both versions of cgroups.
    let is_hybrid = Path::new("/sys/fs/cgroup/unified").is_dir();
    let runtime: &[&str] = if is_hybrid { &["--runtime", "runc"] } else { &[] };
    let words = words.iter().chain(&more).chain(runtime).map(|word| (*word).to_owned()).collect();
    Ok(Engine { program: "podman", words, options: &["--network", "none"] })
}

/// A root folder as a tar: busybox, and `true` as a link to it.
fn image(scratch: &Scratch) -> Result<PathBuf, BenchError> {
    let (root, tar) = (scratch.join("root"), scratch.join("image.tar"));
    let folder = root.join("bin");
    files::make_folder(&folder)?;
    let busybox = process::find("busybox").ok_or(BenchError::NoBusybox)?;
    files::copy(&busybox, &folder.join("busybox"))?;
    let link = folder.join("true");
    symlink("busybox", &link).map_err(|source| FileError::Write { path: link, source })?;
    process::quietly(Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(&root).arg("."))?;
    Ok(tar)
}

/// Podman mounts its store over itself, and leaves that.
fn unmount(scratch: &Path) -> Result<(), BenchError> {
    let mounts = files::read(Path::new("/proc/self/mounts"))?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for point in points.filter(|point| Path::new(point).starts_with(scratch.join("podman"))) {
        process::quietly(Command::new("umount").arg(point))?;
    }
    Ok(())
}

/// The daemon makes one folder in each hierarchy and leaves it.
fn remove_cgroups() -> Result<(), RigError> {
    let top = Path::new("/sys/fs/cgroup");
    for folder in files::list(top)?.into_iter().chain([top.to_owned()]) {
        let path = folder.join(CGROUP);
        match std::fs::remove_dir(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(FileError::Remove { path, source }.into());
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn wait_error(source: std::io::Error) -> ProcessError {
    ProcessError::Wait { command: "dockerd".to_owned(), source }
}
