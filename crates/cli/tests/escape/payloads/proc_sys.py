# Switches of the kernel, opened for writing (never written), and windows on it, read.
SWITCHES = [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/panic", "/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max", "/proc/sys/fs/suid_dumpable",
    "/proc/sys/user/max_user_namespaces", "/proc/irq/default_smp_affinity", "/sys/kernel/mm/ksm/run",
    "/sys/kernel/profiling", "/sys/power/state", "/sys/block",
]
for path in SWITCHES:
    attempt(f"open {path}", lambda: os.close(os.open(path, os.O_WRONLY)))
attempt("make /sys/fs/cgroup/x", lambda: os.mkdir("/sys/fs/cgroup/x"))
attempt("lower our own oom score", lambda: apart(lambda: write("/proc/self/oom_score_adj", "-999")))
