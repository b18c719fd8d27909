# System V shared memory under the key ARGV[2]: make, find or remove it.
deed, key = sys.argv[1], int(sys.argv[2])
IPC_CREAT, IPC_EXCL, IPC_RMID = 0o1000, 0o2000, 0


def segment(flags):
    ctypes.set_errno(0)
    found = libc.shmget(key, 4096, flags)
    if found == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return found


attempt(deed, {
    "make": lambda: segment(IPC_CREAT | IPC_EXCL | 0o600),
    "find": lambda: segment(0),
    "remove": lambda: libc.shmctl(segment(0), IPC_RMID, None),
}[deed])
