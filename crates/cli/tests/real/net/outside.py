"""The world beyond the gateway, in a network namespace of its own: a name server and a few services.

The machine that the daemon is to run on is another namespace, with a wire between the two. `ready` names a process of it;
after that comes every question and connection that is seen, one JSON object a line. A line `NAME ADDRESS` on standard
input leads a name somewhere else.
"""

import base64
import ctypes
import hashlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading

PUBLIC, OTHER, PRIVATE, SIX = "93.184.216.34", "93.184.216.35", "10.77.0.1", "2606:2800:220::1"
METADATA, OWN, STORES = "169.254.169.254", "93.184.216.99", "93.184.216.40"
NAMES = {
    "public.test": PUBLIC,
    "www.public.test": PUBLIC,
    "other.test": OTHER,
    "private.test": PRIVATE,
    "home.test": "127.0.0.1",
    "metadata.test": METADATA,
    "own.test": OWN,
    "mapped.test": "::ffff:" + OTHER,
    "six.test": SIX,
    "db.test": STORES,
    "cache.test": STORES,
}
lock = threading.Lock()


def say(**what):
    with lock:
        print(json.dumps(what), flush=True)


def answer(question):
    at, labels = 12, []
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind = struct.unpack("!H", question[at + 1 : at + 3])[0]
    name = ".".join(labels).lower()
    say(question=name, kind=kind)
    address = NAMES.get(name)
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    wanted = address and family and (":" in address) == (family == socket.AF_INET6)
    data = socket.inet_pton(family, address) if wanted else b""
    code = 0 if address else 3
    head = question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, 1 if data else 0, 0, 0)
    record = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data if data else b""
    return head + question[12 : at + 5] + record


def serve_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((PRIVATE, 5353))
    while True:
        question, who = server.recvfrom(4096)
        server.sendto(answer(question), who)


def echo_frame(connection, request):
    """One short text over a web socket, back as it came."""
    key = request.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    connection.sendall(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    frame = connection.recv(4096)
    mask, text = frame[2:6], frame[6:]
    text = bytes(letter ^ mask[at % 4] for at, letter in enumerate(text))
    connection.sendall(b"\x81" + bytes([len(text)]) + text)


def serve(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, port), family=family)

    def talk(connection):
        with connection:
            first = connection.recv(4096)
            say(service=address, port=port, first=first[:40].decode(errors="replace"))
            if b"Upgrade: websocket" in first:
                return echo_frame(connection, first)
            if first.startswith(b"GET"):
                body = f"{address}:{port}"
                connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            while first:
                connection.sendall(b"seen:" + first if not first.startswith(b"GET") else b"")
                first = connection.recv(65536)

    def accept():
        while True:
            connection, _ = server.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def stay(address, port):
    """Keeps its half open whatever the other does, and tells when the connection is gone altogether."""
    server = socket.create_server((address, port))

    def talk(connection):
        try:
            say(stays=connection.recv(100).decode())
            while connection.recv(100):
                pass
            poll = select.poll()
            poll.register(connection, 0)
            poll.poll()
        except OSError:
            pass
        say(stays="is gone")

    def accept():
        while True:
            connection, _ = server.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def machine():
    """The namespace of the daemon. It has an address of its own that looks like any other, and services at home."""
    (told, tell), (ended, go) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(tell)
        os.read(told, 1)
        ip(f"link add outer type veth peer name inner netns {pid}")
        ip("addr add 10.78.0.1/30 dev outer")
        ip("addr add fd78::1/64 dev outer nodad")
        ip("link set outer up")
        os.write(go, b"x")
        os.read(told, 1)
        return pid
    os.close(go)
    assert ctypes.CDLL(None).unshare(0x40000000) == 0
    os.write(tell, b"x")
    os.read(ended, 1)
    for words in (
        "link set lo up",
        f"addr add {OWN}/32 dev lo",
        "addr add 10.78.0.2/30 dev inner",
        "addr add fd78::2/64 dev inner nodad",
        "link set inner up",
        "route add default via 10.78.0.1",
        "-6 route add default via fd78::1",
    ):
        ip(words)
    for address in (OWN, "10.78.0.2", "127.0.0.1", "::1"):
        serve(address, 80)
    os.write(tell, b"x")
    os.read(ended, 1)
    os._exit(0)


ip("link set lo up")
for address in (PUBLIC + "/32", OTHER + "/32", PRIVATE + "/32", METADATA + "/32", STORES + "/32", SIX + "/128"):
    # Usable at once: nobody else could have it.
    ip(f"addr add {address} dev lo" + (" nodad" if ":" in address else ""))
daemon = machine()
for address in (PUBLIC, OTHER, PRIVATE, METADATA, SIX):
    for port in (80, 443, 5432):
        serve(address, port) if address != SIX or port == 80 else None
stay(PUBLIC, 7000)
threading.Thread(target=serve_names, daemon=True).start()
say(ready=True, daemon=daemon)
for line in sys.stdin:
    name, address = line.split()
    NAMES[name] = address
    say(leads=name, to=address)
