"""Ways around the gateway, tried from inside: each argument names one, and what came of it is printed."""

import ctypes
import fcntl
import os
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"


def tcp(target, port="80", text="ping"):
    with socket.create_connection((target, int(port)), timeout=20) as connection:
        connection.settimeout(20)
        connection.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        return connection.recv(4096).decode(errors="replace").replace("\r\n", "|") or "ended"


def slow(target, seconds, first, second):
    """A request in two pieces with a long while between them."""
    import time

    with socket.create_connection((target, 80), timeout=20) as connection:
        connection.settimeout(20)
        connection.sendall(first.encode().decode("unicode_escape").encode("latin-1"))
        time.sleep(float(seconds))
        connection.sendall(second.encode().decode("unicode_escape").encode("latin-1"))
        while connection.recv(4096):
            pass
        return "ended"


def hello(target, name, padding="0"):
    """A TLS client that names a server, with so many bytes before the name."""
    counted = lambda data, width: len(data).to_bytes(width, "big") + data
    names = counted(b"\0" + counted(name.encode(), 2), 2)
    extensions = b"\0\x15" + counted(bytes(int(padding)), 2)
    extensions += b"\0\0" + counted(names, 2) if name != "-" else b""
    body = b"\3\3" + bytes(32) + b"\0" + counted(b"\x13\1", 2) + counted(b"\0", 1) + counted(extensions, 2)
    message = b"\1" + counted(body, 3)
    pieces = [message[at : at + 16000] for at in range(0, len(message), 16000)]
    with socket.create_connection((target, 443), timeout=20) as connection:
        connection.settimeout(20)
        connection.sendall(b"".join(b"\x16\3\1" + counted(piece, 2) for piece in pieces))
        return connection.recv(7).decode(errors="replace") or "ended"


def udp(target, port):
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        connection.connect((target, int(port)))
        connection.send(b"x")
        return connection.recv(4096).decode(errors="replace")


def raw(protocol, target, kind="3"):
    """A packet of any protocol on top of IP."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with socket.socket(family, int(kind), int(protocol)) as connection:
        connection.settimeout(20)
        connection.connect((target, 0))
        connection.send(b"\x08\0\xf7\xff\0\0\0\0" if protocol in ("1", "58") else struct.pack("!HHI", 4000, 443, 0))
        return "sent"


def sock(family, kind="1", protocol="0"):
    with socket.socket(int(family), int(kind), int(protocol)):
        return "made"


def ask(target, kind, server="9.9.9.9", way="udp"):
    """A question of any kind to a name server; the code of its answer."""
    labels = b"".join(bytes([len(label)]) + label for label in target.encode("latin-1").split(b".") if label)
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\0" + struct.pack("!HH", int(kind), 1)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if way == "udp" else socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect((server, 53))
        connection.sendall(question if way == "udp" else struct.pack("!H", len(question)) + question)
        if way == "udp":
            answer = connection.recv(4096)
        else:
            stream = connection.makefile("rb")
            answer = stream.read(struct.unpack("!H", stream.read(2))[0])
        return f"code {answer[3] & 15} answers {struct.unpack('!H', answer[6:8])[0]}"


def name(target):
    return socket.getaddrinfo(target, 80, type=socket.SOCK_STREAM)[0][4][0]


def option(level, number):
    """A TCP connection from a socket with an option that changes its way."""
    with socket.socket() as connection:
        connection.settimeout(20)
        connection.setsockopt(int(level), int(number), b"lo\0\0" if number == "25" else struct.pack("i", 1))
        connection.connect(("93.184.216.35", 80))
        connection.sendall(b"ping")
        return connection.recv(100).decode() or "ended"


def bound(source):
    """A TCP connection that claims to come from elsewhere."""
    with socket.socket() as connection:
        connection.settimeout(20)
        connection.bind((source, 0))
        connection.connect(("93.184.216.35", 80))
        connection.sendall(b"ping")
        return connection.recv(100).decode() or "ended"


def netlink(part, kind, payload):
    """A change of the network's configuration; how the kernel answers."""
    data = bytes.fromhex(payload)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, int(part)) as connection:
        connection.settimeout(20)
        connection.bind((0, 0))
        connection.send(struct.pack("IHHII", 16 + len(data), int(kind), 0x405, 1, 0) + data)
        code = -struct.unpack("i", connection.recv(4096)[16:20])[0]
        return os.strerror(code) if code else "done"


def rules():
    """Throwing away all packet rules."""
    begin = struct.pack("IHHII", 20, 16, 1, 1, 0) + b"\0\0\0\x0a"
    remove = struct.pack("IHHII", 20, 10 << 8 | 2, 5, 2, 0) + b"\0\0\0\0"
    close = struct.pack("IHHII", 20, 17, 1, 3, 0) + b"\0\0\0\x0a"
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as connection:
        connection.settimeout(20)
        connection.bind((0, 0))
        connection.send(begin + remove + close)
        code = -struct.unpack("i", connection.recv(4096)[16:20])[0]
        return os.strerror(code) if code else "done"


def abstract(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + path)
        return "connected"


def unshare(flags):
    return called(libc.unshare(int(flags, 0)))


def enter(path):
    return called(libc.setns(os.open(path, os.O_RDONLY), 0))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return "written"


def device(path):
    os.close(os.open(path, os.O_RDWR))
    return "opened"


def down(_name):
    """Taking loopback down, and with it every rule's device."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        fcntl.ioctl(connection, 0x8914, struct.pack("16sh14s", b"lo", 0, b""))
    return "done"


def steal(descriptor):
    """The gateway's own sockets, out of init's hands."""
    pidfd = called_number(libc.syscall(434, 1, 0))
    return called(libc.syscall(438, pidfd, int(descriptor), 0))


def called_number(result):
    called(result)
    return result


def flood(count):
    """So many attempts of each kind, as fast as they go."""
    refused = 0
    for at in range(int(count)):
        for attempt in (lambda: tcp("93.184.216.35", "80"), lambda: udp("93.184.216.35", str(1 + at)), lambda: name(f"n{at}.other.test")):
            try:
                attempt()
            except OSError:
                refused += 1
    return f"{refused} refused"


for line in sys.argv[1:]:
    kind, *words = line.split(" ")
    # The rest of a request keeps its spaces.
    words = line.split(" ", 3)[1:] if kind == "tcp" else line.split("^")[1:] if kind == "slow" else words
    try:
        outcome = globals()[kind](*words)
    except (OSError, UnicodeError) as error:
        outcome = type(error).__name__ if not getattr(error, "errno", None) else os.strerror(error.errno) if error.errno > 0 else "no such name"
    shown = " ".join(line.split(" ")[:3]).replace("\\r", "").split("\\n")[0]
    print(shown if len(shown) < 60 else shown[:60] + "...", "->", outcome)
