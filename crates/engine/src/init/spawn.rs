//! Starting a command: descriptors, session, user, folder, program.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use model::exec::{Outcome, Text, Variable, Window};
use rustix::fs::Mode;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Pid, Uid};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::log::Stream;
use super::user::{self, Identity};
use super::wire::Command;
use crate::launcher::Rights;
use crate::sys;

/// A process that has been forked and will become the command, or say on `failure` why not.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) pid: Pid,
    /// Ends without a byte when the program runs.
    pub(super) failure: OwnedFd,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) terminal: bool,
    pub(super) outputs: Vec<(OwnedFd, Stream)>,
}

/// What went wrong between fork and exec: a step, and the kernel's number.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Step {
    Prepare = 1,
    Identity = 2,
    Folder = 3,
    Program = 4,
}

/// Starts a command. What can be refused before there is a process is refused as an [`Outcome`].
pub(super) fn spawn(command: &Command, rights: Rights) -> Result<Spawned, Outcome> {
    let cannot = |what: &str, e: io::Error| not_started(125, &format!("{what}: {e}"));
    if command.argv.is_empty() {
        return Err(not_started(125, "no command was given"));
    }
    let identity = match &command.user {
        Some(text) => Some(user::find(text).map_err(|e| not_started(125, &e.to_string()))?),
        None => None,
    };
    refuse_foreign_user(identity.as_ref(), rights)?;
    let ends = Ends::make(command).map_err(|e| cannot("could not make pipes for the command", e))?;
    let (failure, tell) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|e| cannot("could not make a pipe", e.into()))?;
    match sys::fork().map_err(|e| cannot("could not fork", e))? {
        Some(pid) => Ok(Spawned {
            pid,
            failure,
            stdin: ends.ours.stdin,
            terminal: command.tty.is_some(),
            outputs: ends.ours.outputs,
        }),
        None => {
            let (step, error) = become_command(command, identity.as_ref(), &ends.theirs);
            let number = error.raw_os_error().unwrap_or(0);
            let mut bytes = vec![step as u8];
            bytes.extend(number.to_le_bytes());
            // Init sees the pipe close in any case.
            rustix::io::write(&tell, &bytes).unwrap_or_default();
            sys::leave(127)
        }
    }
}

/// What the bytes on the failure pipe mean. Empty: the program runs.
pub(super) fn failure(bytes: &[u8], command: &[Text], cwd: &Text) -> Option<Outcome> {
    let (step, number) = match bytes {
        [step, a, b, c, d, ..] => (*step, i32::from_le_bytes([*a, *b, *c, *d])),
        _ => return None,
    };
    let error = io::Error::from_raw_os_error(number);
    let program = command.first().map(Text::display).unwrap_or_default();
    Some(match step {
        step if step == Step::Program as u8 && number == libc::ENOENT => {
            not_started(127, &format!("no command `{program}` in the sandbox"))
        }
        step if step == Step::Program as u8 => {
            not_started(126, &format!("could not run `{program}`: {error}"))
        }
        step if step == Step::Folder as u8 => {
            not_started(125, &format!("could not enter the folder `{}`: {error}", cwd.display()))
        }
        step if step == Step::Identity as u8 => {
            not_started(125, &format!("could not become the user: {error}"))
        }
        _ => not_started(125, &format!("could not prepare the command: {error}")),
    })
}

pub(super) fn winsize(window: Window) -> Winsize {
    Winsize { ws_row: window.rows, ws_col: window.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Switches to a user. The caller is a child about to do that user's work.
pub(super) fn assume(identity: &Identity) -> io::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    // An ordinary user's sandbox knows one user, and its groups cannot be changed.
    if rustix::process::getuid() != uid || rustix::process::getgid() != gid {
        rustix::thread::set_thread_groups(&groups)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    }
    Ok(())
}

pub(super) fn refuse_foreign_user(identity: Option<&Identity>, rights: Rights) -> Result<(), Outcome> {
    match (identity, rights) {
        (Some(identity), Rights::User { uid, .. }) if identity.uid != uid => Err(not_started(
            125,
            "a sandbox made by an ordinary user has only that user; sandboxes made by root can have others",
        )),
        _ => Ok(()),
    }
}

fn not_started(code: i32, reason: &str) -> Outcome {
    Outcome::NotStarted { code, reason: reason.to_owned() }
}

struct Ends {
    ours: Ours,
    theirs: Theirs,
}

struct Ours {
    stdin: Option<OwnedFd>,
    outputs: Vec<(OwnedFd, Stream)>,
}

struct Theirs {
    stdio: [OwnedFd; 3],
    terminal: bool,
}

impl Ends {
    fn make(command: &Command) -> io::Result<Self> {
        if let Some(window) = command.tty {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let master = rustix::pty::openpt(flags)?;
            rustix::pty::unlockpt(&master)?;
            let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
            rustix::termios::tcsetwinsize(&master, winsize(window))?;
            let stdio = [slave.try_clone()?, slave.try_clone()?, slave];
            let input = master.try_clone()?;
            rustix::io::ioctl_fionbio(&master, true)?;
            let ours = Ours { stdin: Some(input), outputs: vec![(master, Stream::Out)] };
            return Ok(Self { ours, theirs: Theirs { stdio, terminal: true } });
        }
        let (our_stdin, their_stdin) = if command.stdin {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            (Some(write), read)
        } else {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            (None, rustix::fs::open("/dev/null", flags, Mode::empty())?)
        };
        let (out, their_out) = output_pipe()?;
        let (err, their_err) = output_pipe()?;
        let ours = Ours { stdin: our_stdin, outputs: vec![(out, Stream::Out), (err, Stream::Err)] };
        Ok(Self { ours, theirs: Theirs { stdio: [their_stdin, their_out, their_err], terminal: false } })
    }
}

fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// In the child. Returns only on failure.
fn become_command(command: &Command, identity: Option<&Identity>, ends: &Theirs) -> (Step, io::Error) {
    if let Err(error) = prepare(command, ends) {
        return (Step::Prepare, error);
    }
    if let Some(Err(error)) = identity.map(assume) {
        return (Step::Identity, error);
    }
    if let Err(error) = rustix::process::chdir(Path::new(command.cwd.as_os_str())) {
        return (Step::Folder, error.into());
    }
    match strings(command, identity) {
        Ok((argv, env, path)) => (Step::Program, run(&argv, &env, &path)),
        Err(error) => (Step::Prepare, error.into()),
    }
}

fn prepare(command: &Command, ends: &Theirs) -> io::Result<()> {
    sys::default_signals()?;
    rustix::process::setsid()?;
    let [stdin, stdout, stderr] = &ends.stdio;
    if ends.terminal {
        rustix::process::ioctl_tiocsctty(stdin)?;
    }
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    if command.timeout.is_some() || command.output_limit.is_some() {
        // What it starts must not get away by losing its parent: orphans come to the command, not to init, and
        // so are found when it has to end. Those that end before it stay zombies until then, which is why a
        // command without such a limit is left alone.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    if let Some(umask) = command.umask {
        rustix::process::umask(Mode::from_raw_mode(umask & 0o777));
    }
    Ok(())
}

type Strings = (Vec<CString>, Vec<CString>, Vec<u8>);

fn strings(command: &Command, identity: Option<&Identity>) -> Result<Strings, std::ffi::NulError> {
    let argv = command.argv.iter().map(|arg| CString::new(arg.0.clone())).collect::<Result<_, _>>()?;
    let mut env: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let own = identity.map(|identity| {
        let set = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| Variable { name: name.into(), value: value.as_str().into() })
        };
        [set("HOME", &identity.home), set("USER", &identity.name), set("LOGNAME", &identity.name)]
    });
    for Variable { name, value } in command.env.iter().chain(own.iter().flatten().flatten()) {
        env.retain(|(known, _)| *known != name.0);
        env.push((name.0.clone(), value.0.clone()));
    }
    let path = env
        .iter()
        .find(|(name, _)| name == b"PATH")
        .map_or_else(|| DEFAULT_PATH.to_vec(), |(_, path)| path.clone());
    let env = env
        .into_iter()
        .map(|(name, value)| CString::new([&name[..], b"=", &value[..]].concat()))
        .collect::<Result<_, _>>()?;
    Ok((argv, env, path))
}

const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Finds the program as a shell would, and becomes it.
fn run(argv: &[CString], env: &[CString], path: &[u8]) -> io::Error {
    let name = argv[0].as_bytes();
    if name.is_empty() {
        return io::Error::from_raw_os_error(libc::ENOENT);
    }
    if name.contains(&b'/') {
        return run_file(&argv[0], argv, env);
    }
    let mut refused = None;
    for folder in path.split(|byte| *byte == b':') {
        let folder = if folder.is_empty() { &b"."[..] } else { folder };
        let Ok(program) = CString::new([folder, b"/", name].concat()) else { continue };
        let error = run_file(&program, argv, env);
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            // A match that may not be run: go on looking, but remember it.
            Some(libc::EACCES) => refused = Some(error),
            _ => return error,
        }
    }
    refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn run_file(program: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let error = sys::exec(program, argv, env);
    if error.raw_os_error() != Some(libc::ENOEXEC) {
        return error;
    }
    // A script without `#!`: shells run it themselves.
    let mut script = vec![c"sh".to_owned(), program.clone()];
    script.extend_from_slice(&argv[1..]);
    sys::exec(&c"/bin/sh".to_owned(), &script, env)
}
