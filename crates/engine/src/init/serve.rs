//! Init's loop: one poll over everything that can speak, then straight answers.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use model::exec::{Exec, FrameKind, Outcome};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitStatus};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::conversation::Conversation;
use super::job::{Job, Phase};
use super::log::{self, Stream};
use super::wire::Terms;
use crate::gateway::Gateway;
use crate::launcher::Rights;
use crate::sys;
use crate::view::Plan;

/// The number of the first command.
const FIRST: u32 = 1;
/// Ended commands that are remembered.
const REMEMBERED: usize = 1000;
/// What whoever waits for a command is told when the sandbox's time is over.
const OVER: &str = "its time was over; give more with --ttl";
/// Ended commands whose output something still holds open.
const LEFTOVERS: usize = 64;

#[derive(Debug)]
pub(super) struct Init {
    listener: OwnedFd,
    signals: OwnedFd,
    timer: OwnedFd,
    /// When the timer is set to ring.
    rings: Option<u64>,
    pub(super) log: log::Writer,
    pub(super) rights: Rights,
    /// Where one of the sandbox's overlays is mounted.
    pub(super) overlay: PathBuf,
    /// Where connections out of here arrive, if they may.
    pub(super) gateway: Option<Gateway>,
    /// Absent: nobody's sandbox yet.
    pub(super) terms: Option<Terms>,
    /// Since when no command runs.
    pub(super) idle_since: u64,
    pub(super) jobs: Vec<Job>,
    pub(super) ended: VecDeque<Exec>,
    pub(super) last_job: u32,
    pub(super) conversations: Vec<Conversation>,
    /// While everyone is frozen: who was stopped before, so not to be woken.
    pub(super) stopped_before: Option<Vec<i32>>,
}

/// Who spoke.
#[derive(Clone, Copy, Debug)]
enum Voice {
    Listener,
    Signal,
    Timer,
    Conversation(usize),
    Start(usize),
    Output(usize, usize),
    Input(usize),
}

impl Init {
    pub(super) fn new(
        listener: OwnedFd,
        first: OwnedFd,
        log: log::Writer,
        plan: &Plan,
        rights: Rights,
    ) -> std::io::Result<Self> {
        // The launcher ignores its children's end; we must hear of it.
        sys::default_signals()?;
        let signals = sys::signal_descriptor(&[libc::SIGCHLD])?;
        rustix::net::listen(&listener, 64)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        // This clock goes on while the machine sleeps.
        let timer = rustix::time::timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Self {
            listener,
            signals,
            timer,
            rings: None,
            log,
            rights,
            overlay: overlay(plan),
            gateway: None,
            terms: None,
            idle_since: now(),
            jobs: Vec::new(),
            ended: VecDeque::new(),
            last_job: 0,
            conversations: vec![Conversation::new(first)?],
            stopped_before: None,
        })
    }

    /// Serves until the time is over.
    pub(super) fn serve(&mut self) {
        // The first conversation's request is there already.
        self.hear_conversation(0);
        while self.keep_time() {
            self.tidy();
            if self.terms.is_none() && self.conversations.is_empty() {
                // Whoever had us made is gone, and nobody else knows of us.
                return;
            }
            let voices = self.listen();
            for voice in voices {
                self.hear(voice);
            }
        }
        self.log.append(0, Stream::Note, log::EXPIRED);
        // Init's own end, right after, ends everyone in any case.
        sys::signal_everyone(libc::SIGKILL).unwrap_or_default();
        let over = Outcome::SandboxEnded { reason: OVER.to_owned() };
        for talk in self.conversations.iter_mut().filter(|talk| talk.job.is_some() && !talk.closing) {
            talk.send_json(FrameKind::Ended, &over);
        }
    }

    /// Ends commands whose time is over and sets the timer for the next. `false`: the sandbox's own time is over.
    fn keep_time(&mut self) -> bool {
        let now = now();
        for job in &mut self.jobs {
            if job.deadline.is_some_and(|deadline| deadline <= now) {
                job.kill(Outcome::TimedOut);
            }
        }
        let busy = self.jobs.iter().any(Job::is_running);
        if busy {
            self.idle_since = now;
        }
        let Terms { deadline, idle, .. } = self.terms.unwrap_or_default();
        let idle = idle.filter(|_| !busy).map(|idle| self.idle_since.saturating_add(idle));
        let ends = [deadline, idle].into_iter().flatten().min();
        if ends.is_some_and(|ends| ends <= now) {
            return false;
        }
        let next = self.jobs.iter().filter_map(|job| job.deadline).chain(ends).min();
        if next != self.rings {
            let at = next.unwrap_or(0);
            let value = Timespec { tv_sec: (at / NANOS) as i64, tv_nsec: (at % NANOS) as i64 };
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let spec = Itimerspec { it_interval: zero, it_value: value };
            // Setting a valid time on a timer of our own cannot fail; if it did, the next event sets it again.
            if rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec).is_ok() {
                self.rings = next;
            }
        }
        true
    }

    /// Waits until somebody speaks.
    fn listen(&self) -> Vec<Voice> {
        let mut voices = vec![Voice::Listener, Voice::Signal, Voice::Timer];
        let mut fds = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        for (at, conversation) in self.conversations.iter().enumerate() {
            let job = conversation.job.and_then(|id| self.jobs.iter().find(|job| job.id == id));
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !conversation.deaf && job.is_none_or(Job::wants_input));
            flags.set(PollFlags::OUT, conversation.has_output());
            if !flags.is_empty() {
                voices.push(Voice::Conversation(at));
                fds.push(PollFd::from_borrowed_fd(conversation.fd(), flags));
            }
        }
        for (at, job) in self.jobs.iter().enumerate() {
            if let Some(failure) = &job.failure {
                voices.push(Voice::Start(at));
                fds.push(PollFd::new(failure, PollFlags::IN));
            }
            if let (true, Some(stdin)) = (job.has_input(), &job.stdin) {
                voices.push(Voice::Input(at));
                fds.push(PollFd::new(stdin, PollFlags::OUT));
            }
            let blocked = self.conversations.iter().any(|talk| talk.job == Some(job.id) && talk.is_full());
            let open = job.outputs.iter().enumerate().filter(|(_, output)| !blocked && !output.closed);
            for (which, output) in open {
                voices.push(Voice::Output(at, which));
                fds.push(PollFd::new(&output.pipe, PollFlags::IN));
            }
        }
        match poll(&mut fds, None) {
            Ok(_) => {
                let spoke = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>();
                voices.into_iter().zip(spoke).filter_map(|(voice, spoke)| spoke.then_some(voice)).collect()
            }
            // Interrupted, or out of memory for the moment: look again.
            Err(_) => Vec::new(),
        }
    }

    fn hear(&mut self, voice: Voice) {
        match voice {
            Voice::Listener => self.accept(),
            Voice::Signal => self.reap(),
            Voice::Timer => {
                // Only to make it quiet; keep_time looks at the clock itself.
                rustix::io::read(&self.timer, &mut [0; 8]).unwrap_or_default();
                self.rings = None;
            }
            Voice::Conversation(at) => self.hear_conversation(at),
            Voice::Start(at) => self.hear_start(at),
            Voice::Output(at, which) => {
                self.hear_output(at, which);
            }
            Voice::Input(at) => self.jobs[at].push_input(),
        }
    }

    fn accept(&mut self) {
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        if let Ok(socket) = rustix::net::accept_with(&self.listener, flags)
            && let Ok(conversation) = Conversation::new(socket)
        {
            self.conversations.push(conversation);
        }
    }

    fn hear_start(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        job.hear_start();
        if job.phase == Phase::Running {
            let exec = job.exec();
            for talk in self.conversations.iter_mut().filter(|talk| talk.job == Some(exec.id.0)) {
                talk.send_json(FrameKind::Started, &exec);
            }
        }
    }

    /// Passes on what is there, at most a bufferful. `false`: there was nothing.
    fn hear_output(&mut self, at: usize, which: usize) -> bool {
        let job = &mut self.jobs[at];
        let Some(output) = job.outputs.get_mut(which).filter(|output| !output.closed) else { return false };
        let (stream, mut buffer) = (output.stream, [0; 32 << 10]);
        match rustix::io::read(&output.pipe, &mut buffer) {
            Ok(length) if length > 0 => {
                let bytes = &buffer[..length];
                job.count(length);
                let id = job.id;
                self.log.append(id, stream, bytes);
                let kind = if stream == Stream::Err { FrameKind::Stderr } else { FrameKind::Stdout };
                for talk in self.conversations.iter_mut().filter(|talk| talk.job == Some(id)) {
                    talk.send(kind, bytes);
                }
                true
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
            // The end of a pipe, or EIO, which is the end of a terminal. Marked here, dropped in tidy, so that
            // the places of the others stay the same until then.
            Ok(_) | Err(_) => {
                output.closed = true;
                false
            }
        }
    }

    /// Reaps everyone who ended; most are strangers that were left to us.
    fn reap(&mut self) {
        // Only to make it quiet. No other signal is heard: whoever is inside could send it.
        while let Ok(Some(_)) = sys::take_signal(self.signals.as_fd()) {}
        while let Some((pid, status)) = sys::wait_any() {
            self.ended(pid, status);
        }
    }

    fn ended(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(at) = self.jobs.iter().position(|job| job.is(pid)) {
            if self.jobs[at].failure.is_some() {
                self.hear_start(at);
            }
            self.jobs[at].end(status);
            if self.terms.is_some_and(|terms| terms.throwaway) && self.jobs[at].id == FIRST {
                self.end_everyone();
            }
            // What it wrote before its end comes before the news of its end, within reason: something it
            // started may go on writing for ever.
            for which in 0..self.jobs[at].outputs.len() {
                for _ in 0..32 {
                    if !self.hear_output(at, which) {
                        break;
                    }
                }
            }
            let exec = self.jobs[at].exec();
            for talk in self.conversations.iter_mut().filter(|talk| talk.job == Some(exec.id.0)) {
                if let Some(outcome) = &exec.outcome {
                    talk.send_json(FrameKind::Ended, outcome);
                }
                talk.closing = true;
            }
        }
    }

    /// Ends everyone inside and waits until they are gone, but not for ever: one may hang in the kernel.
    fn end_everyone(&mut self) {
        for _ in 0..100 {
            if !sys::signal_everyone(libc::SIGKILL).unwrap_or_default() {
                return;
            }
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
            let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            // Whether or not somebody ended, we look.
            poll(&mut fds, Some(&moment)).unwrap_or_default();
            while let Ok(Some(_)) = sys::take_signal(self.signals.as_fd()) {}
            while let Some((pid, status)) = sys::wait_any() {
                self.ended(pid, status);
            }
        }
    }

    fn hear_conversation(&mut self, at: usize) {
        let talk = &mut self.conversations[at];
        talk.flush();
        talk.fill();
        loop {
            match self.conversations[at].take() {
                Ok(Some((kind, payload))) => self.answer(at, kind, &payload),
                Ok(None) => return,
                Err(_) => {
                    self.conversations[at].closing = true;
                    return;
                }
            }
        }
    }

    /// Drops what is over.
    fn tidy(&mut self) {
        self.conversations.retain(|talk| !talk.is_over());
        let mut leftovers = 0;
        let (mut over, mut kept) = (Vec::new(), Vec::new());
        for mut job in std::mem::take(&mut self.jobs).into_iter().rev() {
            job.outputs.retain(|output| !output.closed);
            let held = !job.is_running() && !job.outputs.is_empty();
            leftovers += usize::from(held);
            if job.is_running() || (held && leftovers <= LEFTOVERS) {
                kept.push(job);
            } else {
                over.push(job.exec());
            }
        }
        kept.reverse();
        self.jobs = kept;
        self.ended.extend(over.into_iter().rev());
        while self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }
}

/// One that is there for certain.
fn overlay(plan: &Plan) -> PathBuf {
    let part = plan.parts.iter().find(|part| !part.optional);
    part.map_or_else(|| PathBuf::from("/"), |part| part.mountpoint.clone())
}

/// The boot clock in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * NANOS + time.tv_nsec as u64
}

const NANOS: u64 = 1_000_000_000;
