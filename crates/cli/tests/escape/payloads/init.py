# Everything one can do to process ARGV[1] with the rights of its own user. Should one get through, it does no
# lasting harm but is seen.
pid = int(sys.argv[1])


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def vector(buffer):
    return ctypes.byref(Iovec(ctypes.addressof(buffer), len(buffer)))


def mapping():
    """Some address of the process, from its own list or, if that is closed, a likely one."""
    try:
        return int(read(f"/proc/{pid}/maps").split(b"-")[0], 16)
    except (OSError, ValueError, IndexError):
        return 0x400000


def nicer():
    """A value that its own user may always give: the machine the tests run on may have reniced us already."""
    return os.getpriority(os.PRIO_PROCESS, pid) + 1


def reniced(action):
    """The call itself may succeed on our own processes; what counts is whether it reached this one."""
    before = os.getpriority(os.PRIO_PROCESS, pid)
    try:
        action()
    except OSError:
        pass
    if os.getpriority(os.PRIO_PROCESS, pid) == before:
        raise OSError(errno.EPERM, "refused")


BUFFER = ctypes.create_string_buffer(8)
there = Iovec(mapping(), 8)
for name in ("environ", "mem", "auxv", "stack", "syscall", "pagemap", "io"):
    attempt(f"read {name}", lambda: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY)))
attempt("write mem", lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))
attempt("read maps", lambda: read(f"/proc/{pid}/maps") and None)
attempt("list fd", lambda: os.listdir(f"/proc/{pid}/fd") and None)
attempt("list map_files", lambda: os.listdir(f"/proc/{pid}/map_files") and None)
for name in ("exe", "cwd", "root"):
    attempt(f"readlink {name}", lambda: os.readlink(f"/proc/{pid}/{name}") and None)
    attempt(f"open {name}", lambda: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY)))
attempt("open fd/0", lambda: os.close(os.open(f"/proc/{pid}/fd/0", os.O_RDONLY)))
attempt("process_vm_readv", lambda: call("process_vm_readv", pid, vector(BUFFER), 1, ctypes.byref(there), 1, 0))
attempt("process_vm_writev", lambda: call("process_vm_writev", pid, vector(BUFFER), 1, ctypes.byref(there), 1, 0))
attempt("kcmp", lambda: call("kcmp", pid, os.getpid(), 1, 0, 0))
attempt("pidfd_getfd", lambda: os.close(call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)))
attempt("move_pages", lambda: call("move_pages", pid, 0, None, None, None, 0))
attempt("ptrace attach", lambda: apart(lambda: call("ptrace", 16, pid, 0, 0)))
attempt("ptrace seize", lambda: apart(lambda: call("ptrace", 0x4206, pid, 0, 0)))
attempt("oom_score_adj", lambda: write(f"/proc/{pid}/oom_score_adj", "1000"))
attempt("comm", lambda: write(f"/proc/{pid}/comm", "x"))
attempt("coredump_filter", lambda: write(f"/proc/{pid}/coredump_filter", "0"))
attempt("prlimit", lambda: call("prlimit64", pid, 1, ctypes.create_string_buffer(struct.pack("<2Q", 1 << 40, 1 << 40)), None))
attempt("sched_setscheduler", lambda: call("sched_setscheduler", pid, 5, ctypes.create_string_buffer(4)))
attempt("sched_setaffinity", lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}))
attempt("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, pid, nicer()))
attempt("setpriority of the user", lambda: reniced(lambda: os.setpriority(os.PRIO_USER, os.getuid(), nicer())))
