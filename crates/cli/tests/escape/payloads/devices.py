# Device nodes: which there are, and whether one can make or open others. ARGV[1]: a device node of the host.
import stat
print("dev:", *sorted(os.listdir("/dev")))
for name in ("mem", "kmsg", "kvm", "fuse", "net/tun", "loop-control", "vda", "sda", "console", "tty0", "vsock", "uinput"):
    attempt(f"open /dev/{name}", lambda: os.close(os.open(f"/dev/{name}", os.O_RDONLY)))
for name, kind, device in (("memory", stat.S_IFCHR, (1, 1)), ("a disk", stat.S_IFBLK, (254, 0)), ("a whiteout", stat.S_IFCHR, (0, 0))):
    for folder in ("/tmp", "/dev/shm", "/dev"):
        attempt(f"make {name} in {folder}", lambda: os.mknod(f"{folder}/node", kind | 0o666, os.makedev(*device)))
attempt("write in /dev", lambda: os.close(os.open("/dev/new", os.O_CREAT | os.O_WRONLY)))
attempt("remove /dev/null", lambda: os.unlink("/dev/null"))
attempt("chmod /dev/null", lambda: os.chmod("/dev/null", 0))
for path in sys.argv[1:]:
    attempt("open a node of the host", lambda: os.close(os.open(path, os.O_RDONLY)))
