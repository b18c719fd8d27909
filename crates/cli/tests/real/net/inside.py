"""Tries to reach what its arguments name, and says what came of each: `KIND TARGET PORT [TEXT]`."""

import socket
import sys


def tcp(target, port, text="ping"):
    with socket.create_connection((target, int(port)), timeout=20) as connection:
        connection.settimeout(20)
        connection.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        return connection.recv(4096).decode(errors="replace").replace("\r\n", "|")


def udp(target, port, text="x"):
    with socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(20)
        connection.connect((target, int(port)))
        connection.send(text.encode())
        return connection.recv(4096).decode(errors="replace")


def name(target, _port):
    return socket.getaddrinfo(target, 80, type=socket.SOCK_STREAM)[0][4][0]


def txt(target, _port):
    """A question of another kind than for addresses; its answer's code."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in target.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(20)
        connection.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x10\x00\x01", ("9.9.9.9", 53))
        return f"code {connection.recv(512)[3] & 15}"


for line in sys.argv[1:]:
    kind, *words = line.split(" ", 3)
    try:
        print(line.split(" ")[0], words[0], words[1], "->", {"tcp": tcp, "udp": udp, "name": name, "txt": txt}[kind](*words))
    except OSError as error:
        print(line.split(" ")[0], words[0], words[1], "->", type(error).__name__)
