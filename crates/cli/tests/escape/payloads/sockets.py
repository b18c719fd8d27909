# ARGV: kind=address pairs. Connects, or for datagrams sends, and says what became of it.
def stream(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        s.connect(address)


def datagram(address):
    """Sends, and waits for the echo: only an answer shows that it went somewhere."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect(address)
        s.send(b"hello")
        s.recv(16)


def place(value):
    host, port = value.rsplit(":", 1)
    return host, int(port)


def lookup(name):
    try:
        socket.getaddrinfo(name, 80)
    except socket.gaierror:
        raise OSError(errno.ENETUNREACH, "no resolver")


for argument in sys.argv[1:]:
    kind, value = argument.split("=", 1)
    attempt(kind, {
        "tcp": lambda: stream(socket.AF_INET, place(value)),
        "tcp6": lambda: stream(socket.AF_INET6, place(value)),
        "udp": lambda: datagram(place(value)),
        "udp6": lambda: datagram(place(value)),
        "abstract": lambda: stream(socket.AF_UNIX, "\0" + value),
        "path": lambda: stream(socket.AF_UNIX, value),
        "fifo": lambda: os.close(os.open(value, os.O_WRONLY | os.O_NONBLOCK)),
        "name": lambda: lookup(value),
    }[kind.split("-")[0]])
