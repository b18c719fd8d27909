FLAGS = {
    "mount": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000,
    "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x00000080,
}
SIGCHLD = 17


def clone(flags):
    child = call("clone", flags | SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def clone3(flags):
    arguments = struct.pack("<8Q", flags, 0, 0, 0, SIGCHLD, 0, 0, 0)
    child = call("clone3", ctypes.create_string_buffer(arguments), len(arguments))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def raise_the_cap_then_unshare():
    try:
        write("/proc/sys/user/max_user_namespaces", "100000")
    except OSError:
        pass
    call("unshare", FLAGS["user"])


for name, flag in FLAGS.items():
    attempt(f"unshare {name}", lambda: apart(lambda: call("unshare", FLAGS["user"] | flag) and None))
attempt("unshare user after raising the cap", lambda: apart(raise_the_cap_then_unshare))
attempt("clone user", lambda: clone(FLAGS["user"]))
attempt("clone3 user", lambda: clone3(FLAGS["user"]))
