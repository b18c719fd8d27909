# Entering the namespaces of process ARGV[1].
pid = int(sys.argv[1])
for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
    attempt(f"open ns/{name}", lambda: os.close(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)))
attempt("pidfd_open", lambda: apart(lambda: call("pidfd_open", pid, 0) and None))
attempt("setns pidfd", lambda: apart(lambda: call("setns", call("pidfd_open", pid, 0), 0x10000000) and None))
