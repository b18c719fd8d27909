# Typing into a terminal of our own, which is the most harmless one. The kernel looks at 32 bits of the request.
import pty
TIOCSTI, TIOCLINUX = 0x5412, 0x541C


def ioctl(terminal, request, argument):
    libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
    ctypes.set_errno(0)
    if libc.ioctl(terminal, request, argument) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def own(request, argument):
    def type_in():
        _, slave = pty.openpty()
        os.setsid()
        import fcntl, termios
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        ioctl(slave, request, argument)
    return apart(type_in)


attempt("TIOCSTI", lambda: own(TIOCSTI, b"x"))
attempt("TIOCSTI with high bits", lambda: own(0xDEADBEEF00000000 | TIOCSTI, b"x"))
attempt("TIOCLINUX", lambda: own(TIOCLINUX, b"\x02"))
if os.isatty(0):
    attempt("TIOCSTI on standard input", lambda: ioctl(0, TIOCSTI, b"x"))
    print("terminal:", os.ttyname(0))
print("descriptors that are terminals:", sum(os.isatty(fd) for fd in range(64)))
print("leads its session:", os.getsid(0) == int(os.environ.get("LEADER", os.getpid())))
attempt("/dev/tty", lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
