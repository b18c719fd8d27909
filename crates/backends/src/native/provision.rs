//! Making a sandbox, starting a stopped one, finding a running one again.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::capture::{Frozen, Step};
use engine::cgroup::Cgroup;
use engine::image;
use engine::init::wire::{Pong, Request, Terms, VERSION};
use engine::launcher::{Given, Launched, Order};
use engine::view::Ask;
use model::exec::{ExecRequest, Progress};
use model::sandbox::{CreateRequest, WorkspaceChoice};
use model::{Caveat, Code, Problem, SandboxId};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

use super::authority;
use super::command::decide;
use super::host::refuse_flawed;
use super::problem::NativeError;
use super::snapshot::make_disk;
use super::store::{FIRST_TURN, Folder, Stored};
use super::{Inner, Native, Provision, Provisioned, Running, talk};

/// What a sandbox has from its first moment on.
#[derive(Debug, Default)]
pub(super) struct Beginning<'a> {
    /// The first words to its init.
    pub(super) opening: &'a [u8],
    /// Files put over those of its view.
    pub(super) given: Vec<Given>,
}

/// What a launch left in our hands.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) launched: Launched,
    pub(super) conversation: StdStream,
    pub(super) workspace: Option<PathBuf>,
    pub(super) caveats: Vec<Caveat>,
}

impl Made {
    pub(super) fn new(stored: &Stored, launched: Launched, conversation: StdStream) -> Self {
        let caveats = stored.caveats.iter().chain(&launched.caveats).cloned().collect();
        let workspace = stored.frozen.as_ref().map(|frozen| frozen.workspace.clone());
        Self { launched, conversation, workspace, caveats }
    }
}

impl Native {
    /// Makes a sandbox and waits until it answers. On error nothing is left behind.
    pub async fn provision(
        &self,
        order: Provision<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Provisioned, Problem> {
        refuse_flawed(&self.0.machine.kernel)?;
        let opening = opening(&order, 0)?;
        let made = tokio::task::block_in_place(|| {
            let _waiting = self.0.stock.waiting();
            self.0.make(&order, &opening, progress)
        });
        let made = made.map(|(made, again)| {
            again.into_iter().for_each(|stored| self.restock_later(stored));
            made
        });
        self.greet(order, made).await
    }

    /// Makes the processes of a stopped sandbox again, on its kept layers.
    pub async fn start(&self, order: Provision<'_>) -> Result<Provisioned, Problem> {
        refuse_flawed(&self.0.machine.kernel)?;
        let opening = opening(&order, Folder::of(&self.0.home, order.id).last_exec()?)?;
        let made = tokio::task::block_in_place(|| self.0.make_again(&order, &opening));
        let id = order.id;
        match self.greet_kept(order, made).await {
            Ok(provisioned) => Ok(provisioned),
            Err(problem) => {
                self.kill_leftover(id).await?;
                Err(problem)
            }
        }
    }

    pub(super) async fn greet(
        &self,
        order: Provision<'_>,
        made: Result<Made, NativeError>,
    ) -> Result<Provisioned, Problem> {
        let id = order.id;
        match self.greet_kept(order, made).await {
            Ok(provisioned) => Ok(provisioned),
            Err(mut problem) => {
                if let Err(left) = self.teardown(id).await {
                    problem.causes.push(format!("and what was made of it could not be removed: {left}"));
                }
                Err(problem)
            }
        }
    }

    async fn greet_kept(
        &self,
        order: Provision<'_>,
        made: Result<Made, NativeError>,
    ) -> Result<Provisioned, Problem> {
        let Made { launched, conversation, workspace, caveats } =
            made.map_err(|error| self.0.explain(error))?;
        let running = self.running(order.id, launched.process, VERSION)?;
        let talk = conversation.set_nonblocking(true).and_then(|()| UnixStream::from_std(conversation));
        let mut stream = talk.map_err(NativeError::Talk)?;
        talk::first_word(&mut stream).await?;
        let first = match order.first {
            Some(_) => Some(stream),
            None => {
                let _pong: Pong = talk::answer(&mut stream).await?;
                None
            }
        };
        Ok(Provisioned { running, workspace, caveats, first })
    }

    /// Finds a running sandbox again after a restart of the daemon. `None`: its init is gone.
    pub async fn adopt(&self, id: SandboxId) -> Option<Running> {
        let folder = Folder::of(&self.0.home, id);
        let mut stream = talk::connect(&folder.0).await.ok()?;
        let peer = rustix::net::sockopt::socket_peercred(stream.as_fd()).ok()?;
        let process = rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty()).ok()?;
        // Only now ask: the answer proves that the process we hold is the one that listens.
        let opening = talk::opening(&Request::Ping).ok()?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, &opening).await.ok()?;
        let pong: Pong = talk::answer(&mut stream).await.ok()?;
        self.running(id, process, pong.version).ok()
    }

    pub(super) fn running(
        &self,
        id: SandboxId,
        process: OwnedFd,
        version: u32,
    ) -> Result<Running, NativeError> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an OwnedFd that is never taken out keeps its promise"
        )]
        let process = AsyncFd::new(process).map_err(NativeError::Talk)?;
        let running = Running { id, process: Arc::new(process), version };
        self.held().insert(id, running.clone());
        Ok(running)
    }
}

impl Inner {
    /// The straight path from request to a launched init. Blocking. Says what to make again for the next one, too.
    fn make(
        &self,
        order: &Provision<'_>,
        opening: &[u8],
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Made, Option<Stored>), NativeError> {
        let enforced = self.enforce(order.id, &order.request.limits)?;
        let frozen = self.freeze(order.id, order.request, progress)?;
        let ask = Ask { request: order.request, frozen: frozen.as_ref(), disk_kind: enforced.disk_kind };
        let (plan, mut masked, mut caveats) = self.planner.plan(&ask)?;
        if let Some(frozen) = &frozen {
            masked.extend(frozen.masked.iter().cloned());
            caveats.extend(frozen.caveats.iter().cloned());
        }
        caveats.extend(enforced.caveats);
        let (layers, since, disputed) = (Vec::new(), None, Vec::new());
        let (turn, ran_in) = (FIRST_TURN, Some(self.boot.clone()));
        let stored = Stored { plan, frozen, masked, caveats, layers, since, disputed, turn, ran_in };
        // What is made to measure for one sandbox is of no use to the next.
        if enforced.cgroup.is_none()
            && stored.plan.disk.is_none()
            && order.request.unmask.is_empty()
            && !authority::is_needed(order.request)
        {
            let made = self.take_from_stock(order.id, &stored, opening)?;
            return Ok((made, Some(stored)));
        }
        let folder = Folder::of(&self.home, order.id);
        folder.make()?;
        folder.write(&stored)?;
        make_disk(&folder, &stored)?;
        let given = folder.trust(&self.home, order.request)?;
        let made =
            self.launch_as(&folder, &stored, enforced.cgroup.as_ref(), Beginning { opening, given })?;
        Ok((made, None))
    }

    /// The same for a sandbox that has its layers already. Its frozen workspace stays the one it was made with.
    fn make_again(&self, order: &Provision<'_>, opening: &[u8]) -> Result<Made, NativeError> {
        let folder = Folder::of(&self.home, order.id);
        let mut stored = self.change_over(order.id)?;
        if stored.ran_in.as_ref() != Some(&self.boot) {
            stored.ran_in = Some(self.boot.clone());
            folder.replace(&stored)?;
        }
        folder.clear_scratch()?;
        let enforced = self.enforce(order.id, &order.request.limits)?;
        let given = folder.trust(&self.home, order.request)?;
        self.launch_as(&folder, &stored, enforced.cgroup.as_ref(), Beginning { opening, given })
    }

    fn freeze(
        &self,
        id: SandboxId,
        request: &CreateRequest,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Option<Frozen>, NativeError> {
        let workspace = match &request.workspace {
            WorkspaceChoice::None => None,
            WorkspaceChoice::Folder(path) => Some(PathBuf::from(path.as_os_str())),
            WorkspaceChoice::Auto => {
                engine::capture::worktree_around(Path::new(request.context.cwd.as_os_str()))
            }
        };
        let Some(path) = workspace else { return Ok(None) };
        let look = std::fs::read_dir(&path).and_then(|_| std::fs::canonicalize(&path));
        let path = look.map_err(|source| NativeError::Workspace { path, source })?;
        let show = |step| match step {
            Step::Changing => self.clear_stock_of(&path),
            Step::Copying(engine::capture::Progress { files, bytes, total }) => {
                progress(Progress::Capturing { files, bytes, total });
            }
        };
        Ok(Some(self.captures.freeze(&path, id, &request.unmask, &show)?))
    }

    pub(super) fn launch_as(
        &self,
        folder: &Folder,
        stored: &Stored,
        cgroup: Option<&Cgroup>,
        beginning: Beginning<'_>,
    ) -> Result<Made, NativeError> {
        let (launched, conversation) = self.launch(folder, stored, cgroup, beginning)?;
        Ok(Made::new(stored, launched, conversation))
    }

    pub(super) fn launch(
        &self,
        folder: &Folder,
        stored: &Stored,
        cgroup: Option<&Cgroup>,
        beginning: Beginning<'_>,
    ) -> Result<(Launched, StdStream), NativeError> {
        let Beginning { opening, mut given } = beginning;
        given.extend(self.hosts.given(&self.home, &stored.plan)?);
        folder.make_parts(stored, &self.layers)?;
        let plan = match stored.layers.as_slice() {
            [] => Cow::Borrowed(&stored.plan),
            layers => Cow::Owned(self.layers.under(&stored.plan, layers)?),
        };
        let path = folder.log();
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(|source| NativeError::Write { path, source })?;
        let (mut conversation, theirs) = StdStream::pair().map_err(NativeError::Talk)?;
        // Written before init exists, so that it finds its first request waiting. It fits the socket's buffer or, if its
        // environment is very large, is written while init reads; the launcher does not wait for us in between.
        conversation.set_nonblocking(true).map_err(NativeError::Talk)?;
        let early = match conversation.write(opening) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(NativeError::Talk(error)),
        };
        let join = cgroup.map(Cgroup::process_files).unwrap_or_default();
        let inside = folder.0.strip_prefix(&self.home).unwrap_or(&folder.0).to_owned();
        // Held until it is mounted; from then on the sandbox's mounts hold it.
        let image = plan.image().map(|_| image::attach(&folder.image(stored.turn))).transpose()?;
        let disk = image.as_ref().map(|image| image.device.clone());
        let upper = stored.upper();
        let order =
            Order { plan: &plan, folder: inside, upper, conversation: &theirs, log: &log, join, disk, given };
        let launched = self.launcher.launch(order)?;
        conversation.set_nonblocking(false).map_err(NativeError::Talk)?;
        conversation.write_all(&opening[early..]).map_err(NativeError::Talk)?;
        Ok((launched, conversation))
    }
}

/// The first words to a sandbox's init: how long it lives, which number its last command had, and what it is to do first.
pub(super) fn opening(order: &Provision<'_>, last_exec: u32) -> Result<Vec<u8>, Problem> {
    let idle = order.request.limits.idle.map(|span| span.0.as_nanos() as u64);
    let Provision { deadline, throwaway, .. } = *order;
    let mut words = talk::opening(&Request::Begin(Terms { deadline, idle, throwaway, last_exec }))?;
    let request = match order.first {
        Some(first) => Request::Exec(Box::new(decide(&order.request.context, checked(first)?))),
        None => Request::Ping,
    };
    words.extend(talk::opening(&request)?);
    Ok(words)
}

fn checked(request: &ExecRequest) -> Result<&ExecRequest, Problem> {
    if request.argv.is_empty() {
        Err(Problem::new(Code::BadRequest, "no command was given"))
    } else {
        Ok(request)
    }
}
