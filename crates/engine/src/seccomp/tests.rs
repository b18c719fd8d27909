//! The filter on the real kernel: a child installs it, makes the call, and exits with the errno.
//!
//! What this kernel would refuse without a filter too (x32 is often not built in) is shown on a small
//! interpreter as well, which also compares the search with the rules number by number.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_long, sock_filter};
use proptest::prelude::*;

use super::program::{ARCHITECTURE, AUDIT_ARCH, NUMBER, low_half_of};
use super::rules::{Answer, Errno, rules};
use super::{Policy, install, program};

const PLAIN: Policy = Policy { nested: false };
const NESTED: Policy = Policy { nested: true };

#[test]
fn kernel_interfaces_are_refused() {
    for call in [
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_fsopen,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_init_module,
        libc::SYS_open_by_handle_at,
        libc::SYS_syslog,
        libc::SYS_setns,
        libc::SYS_clock_settime,
    ] {
        check(PLAIN, [call, -1, 0, 0], libc::EPERM);
    }
}

#[test]
fn what_is_hidden_looks_like_an_older_kernel() {
    for call in [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_keyctl, libc::SYS_clone3, 4095]
    {
        check(PLAIN, [call, 0, 0, 0], libc::ENOSYS);
    }
}

#[test]
fn no_namespaces_unless_nested() {
    let user = c_long::from(libc::CLONE_NEWUSER);
    check(PLAIN, [libc::SYS_unshare, user, 0, 0], libc::EPERM);
    check(PLAIN, [libc::SYS_unshare, 0x80, 0, 0], libc::EPERM);
    check(PLAIN, [libc::SYS_clone, user | c_long::from(libc::SIGCHLD), 0, 0], libc::EPERM);
    check(PLAIN, [libc::SYS_unshare, c_long::from(libc::CLONE_FILES), 0, 0], 0);
    check(NESTED, [libc::SYS_unshare, user, 0, 0], 0);
    // The kernel's own answers to nonsense: it was asked.
    check(NESTED, [libc::SYS_clone3, 0, 0, 0], libc::EINVAL);
    check(NESTED, [libc::SYS_open_tree, -1, 0, 0], libc::EFAULT);
}

#[test]
fn only_the_common_socket_families() {
    let stream = c_long::from(libc::SOCK_STREAM);
    for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET, libc::AF_KEY, libc::AF_XDP] {
        let expected = libc::EAFNOSUPPORT;
        check(PLAIN, [libc::SYS_socket, c_long::from(family), c_long::from(libc::SOCK_RAW), 0], expected);
        check(PLAIN, [libc::SYS_socketpair, c_long::from(family), stream, 0], expected);
    }
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        check(PLAIN, [libc::SYS_socket, c_long::from(family), stream, 0], 0);
    }
    let netlink = c_long::from(libc::AF_NETLINK);
    check(PLAIN, [libc::SYS_socket, netlink, c_long::from(libc::SOCK_RAW), 0], 0);
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    let fd = c_long::from(terminal.as_raw_fd());
    let sticky = libc::TIOCSTI as c_long;
    check(PLAIN, [libc::SYS_ioctl, fd, sticky, c"x".as_ptr() as c_long], libc::EPERM);
    check(PLAIN, [libc::SYS_ioctl, fd, libc::TIOCLINUX as c_long, c"x".as_ptr() as c_long], libc::EPERM);
    // The kernel reads 32 bits of the request, so the high half must not be a way round.
    check(PLAIN, [libc::SYS_ioctl, fd, sticky | 1 << 32, c"x".as_ptr() as c_long], libc::EPERM);
    let mut size = [0u16; 4];
    let request = libc::TIOCGWINSZ as c_long;
    check(PLAIN, [libc::SYS_ioctl, fd, request, size.as_mut_ptr() as c_long], 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn foreign_calling_conventions_do_not_exist() {
    let x32 = |number: c_long| number | 0x4000_0000;
    for call in [libc::SYS_getpid, libc::SYS_write, libc::SYS_unshare] {
        check(PLAIN, [x32(call), 0, 0, 0], libc::ENOSYS);
        check(NESTED, [x32(call), 0, 0, 0], libc::ENOSYS);
        assert_eq!(interpret(&program(NESTED), AUDIT_ARCH, x32(call) as u32, [0; 6]), refused(Errno::NoSys));
    }
    // 20 is getpid in the i386 table and writev in ours. Without the filter the kernel answers the pid.
    assert_eq!(in_child(PLAIN, || interrupt_0x80(20)), libc::ENOSYS);
    const AUDIT_ARCH_I386: u32 = 0x4000_0003;
    assert_eq!(interpret(&program(PLAIN), AUDIT_ARCH_I386, 20, [0; 6]), refused(Errno::NoSys));
}

#[test]
fn ordinary_programs_do_not_notice() {
    let script = "echo hi | cat; (echo sub) & wait";
    assert_eq!(output(&["sh", "-c", script]).unwrap(), "hi\nsub\n");
    let threads = "import threading,subprocess\n\
        found=[]\n\
        t=[threading.Thread(target=lambda:found.append(1)) for _ in range(3)]\n\
        [x.start() for x in t];[x.join() for x in t]\n\
        print(len(found), subprocess.run(['echo','child'],capture_output=True,text=True).stdout.strip())";
    let event_loop = "require('child_process').execFile('echo',['x'],(e,o)=>\
        require('fs').promises.readFile('/proc/self/comm').then(t=>console.log(o.trim(),t.length>0)))";
    assert_eq!(output(&["python3", "-c", threads]).unwrap(), "3 child\n");
    // Run times with habits of their own, those of them that this machine has.
    let more =
        [(["node", "-e", event_loop], "x true\n"), (["java", "-Xshare:auto", "--list-modules"], "java.base")];
    for (command, expected) in more {
        if let Some(text) = output(&command) {
            assert!(text.starts_with(expected), "{command:?}: {text}");
        }
    }
}

#[test]
fn the_filter_says_no_without_no_new_privs_only_to_the_unprivileged() {
    // Root may install without it; the errno shows that the program itself is well formed.
    let denied = if rustix::process::geteuid().is_root() { 0 } else { libc::EACCES };
    let program = program(PLAIN);
    assert_eq!(wait_for(fork_with(|| errno_of(install(&program)))), denied);
}

proptest! {
    #[test]
    fn the_search_finds_what_the_rules_say(number in prop_oneof![0u32..600, any::<u32>()], nested: bool) {
        let policy = Policy { nested };
        let expected = match rules(policy).get(&number) {
            Some(Answer::Allow) => libc::SECCOMP_RET_ALLOW,
            Some(Answer::Refuse(errno)) => refused(*errno),
            // An argument that every question refuses: all bits set, no known family, not a known request.
            Some(Answer::Ask(question)) => match question.test {
                super::rules::Test::NoneOf(_) => libc::SECCOMP_RET_ALLOW,
                super::rules::Test::NoBits(_) | super::rules::Test::OnlyOf(_) => refused(question.refusal),
            },
            None => refused(Errno::NoSys),
        };
        prop_assert_eq!(interpret(&program(policy), AUDIT_ARCH, number, [u32::MAX; 6]), expected);
    }
}

#[track_caller]
fn check(policy: Policy, call: [c_long; 4], expected: i32) {
    let [number, arguments @ ..] = call;
    assert_eq!(in_child(policy, || raw(number, arguments)), expected, "call {call:?}");
}

/// The errno of `attempt` in a child under the filter; 0 when it succeeded.
fn in_child(policy: Policy, attempt: impl Fn() -> i32) -> i32 {
    let program = program(policy);
    wait_for(fork_with(|| {
        if rustix::thread::set_no_new_privs(true).is_err() || install(&program).is_err() {
            return 255;
        }
        attempt()
    }))
}

fn fork_with(child: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child makes system calls only: it allocates nothing, takes no lock, and leaves with _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let code = child();
        // SAFETY: _exit may be called in a forked child of a threaded process.
        unsafe { libc::_exit(code) };
    }
    pid
}

fn wait_for(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    assert!(libc::WIFEXITED(status), "the child died of a signal: status {status:#x}");
    libc::WEXITSTATUS(status)
}

fn raw(number: c_long, [one, two, three]: [c_long; 3]) -> i32 {
    // SAFETY: the calls of these tests get no pointer that is not valid for reading or writing what they
    // take, or fail before they look; a `clone` here is refused.
    let result = unsafe { libc::syscall(number, one, two, three, 0, 0, 0) };
    if result >= 0 { 0 } else { errno_of(Err(std::io::Error::last_os_error())) }
}

fn errno_of(result: std::io::Result<()>) -> i32 {
    result.err().map_or(0, |error| error.raw_os_error().unwrap_or(254))
}

#[cfg(target_arch = "x86_64")]
fn interrupt_0x80(number: i32) -> i32 {
    let result: i32;
    // SAFETY: getpid takes no argument and touches no memory; the gate may clear r8 to r11.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") number => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result < 0 { -result } else { 0 }
}

/// What a command prints under the filter; nothing when it is not installed.
fn output(words: &[&str]) -> Option<String> {
    let program = program(PLAIN);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            rustix::thread::set_no_new_privs(true)?;
            install(&program)
        })
    };
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        result => result.unwrap(),
    };
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn refused(errno: Errno) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Runs the program as the kernel would, for the few instructions it is made of.
fn interpret(program: &[sock_filter], architecture: u32, number: u32, arguments: [u32; 6]) -> u32 {
    let mut place = 0;
    let mut value = 0;
    loop {
        let now = program[place];
        place += 1;
        let mut branch = |taken: bool| place += usize::from(if taken { now.jt } else { now.jf });
        match u32::from(now.code) {
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                value = match now.k {
                    NUMBER => number,
                    ARCHITECTURE => architecture,
                    offset => arguments[(0..6).find(|index| low_half_of(*index) == offset).unwrap() as usize],
                }
            }
            code if code == libc::BPF_JMP | libc::BPF_JEQ => branch(value == now.k),
            code if code == libc::BPF_JMP | libc::BPF_JGE => branch(value >= now.k),
            code if code == libc::BPF_JMP | libc::BPF_JSET => branch(value & now.k != 0),
            code if code == libc::BPF_JMP | libc::BPF_JA => place += now.k as usize,
            code if code == libc::BPF_RET => return now.k,
            code => panic!("an instruction the filter should not have: {code:#x}"),
        }
    }
}
