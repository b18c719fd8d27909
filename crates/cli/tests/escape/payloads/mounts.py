# Every way to change what is mounted. ARGV[1] is an empty folder; with `fresh` as ARGV[2] it first takes a user and
# a mount namespace of its own.
folder, fresh = sys.argv[1], sys.argv[2:] == ["fresh"]
if fresh:
    uid, gid = os.getuid(), os.getgid()
    call("unshare", 0x10020000)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"0 {uid} 1")
    write("/proc/self/gid_map", f"0 {gid} 1")
    call("mount", text("none"), text("/"), None, 0x44000, None)

BIND, REMOUNT, READ_ONLY = 4096, 32, 1


def mount(kind, target=folder, flags=0, data=None):
    call("mount", text(kind), text(target), text(kind), flags, text(data) if data else None)


attempt("tmpfs", lambda: mount("tmpfs"))
attempt("cgroup v1", lambda: mount("cgroup", data="rdma"))
attempt("cgroup v2", lambda: mount("cgroup2"))
attempt("procfs", lambda: mount("proc"))
attempt("debugfs", lambda: mount("debugfs"))
attempt("the disk", lambda: call("mount", text("/dev/vda"), text(folder), text("ext4"), READ_ONLY, None))
attempt("bind", lambda: call("mount", text("/etc"), text(folder), None, BIND, None))
attempt("sys writable", lambda: call("mount", None, text("/sys"), None, REMOUNT | BIND, None))
attempt("dev writable", lambda: call("mount", None, text("/dev"), None, REMOUNT | BIND, None))
attempt("uncover kallsyms", lambda: call("umount2", text("/proc/kallsyms"), 2))
attempt("uncover keys", lambda: call("umount2", text("/proc/keys"), 2))
attempt("fsopen", lambda: os.close(call("fsopen", text("tmpfs"), 1)))
attempt("open_tree", lambda: os.close(call("open_tree", -100, text("/etc"), 1 | 0x80000)))
attempt("mount_setattr", lambda: call("mount_setattr", -100, text("/sys"), 0, ctypes.create_string_buffer(struct.pack("<4Q", 0, 1, 0, 0)), 32))
attempt("pivot_root", lambda: apart(lambda: call("pivot_root", text(folder), text(folder))))
