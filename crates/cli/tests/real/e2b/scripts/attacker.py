"""A client that means no good, with a sandbox of its own and one of somebody else's that it wants to get at."""

import http.client
import leave
import json
import os
import socket
import struct
import time
import urllib.parse

from e2b import Sandbox

URL = urllib.parse.urlsplit(os.environ["E2B_API_URL"])
KEY = os.environ["E2B_API_KEY"]
DAEMON = int(os.environ["DAEMON"])
PROCESS, FILES = "process.Process", "filesystem.Filesystem"

victim, attacker = Sandbox.create(timeout=600), Sandbox.create(timeout=600)
victim.files.write("secret", "of the victim")
watched = victim.commands.run("sleep 1000", background=True)
TOKEN = attacker.connection_config.sandbox_headers["X-Access-Token"]
assert TOKEN != victim.connection_config.sandbox_headers["X-Access-Token"]
GOOD = {"X-API-Key": KEY}
MINE = {"E2b-Sandbox-Id": attacker.sandbox_id, "E2b-Sandbox-Port": "49983", "X-Access-Token": TOKEN}
THEIRS = {**MINE, "E2b-Sandbox-Id": victim.sandbox_id}


def memory():
    """What the daemon holds, in MiB."""
    with open(f"/proc/{DAEMON}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS"))


BEFORE = memory()


def ask(method, path, headers={}, body=None):
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, http.client.IncompleteRead):
        # Closed in the middle of what was too much.
        return 0, b""
    finally:
        connection.close()


def rpc(service, method, message, headers=MINE, raw=None, streamed=False):
    body = raw if raw is not None else json.dumps(message).encode()
    if streamed and raw is None:
        body = framed(body)
    kind = "application/connect+json" if streamed else "application/json"
    return ask("POST", f"/{service}/{method}", {**headers, "Content-Type": kind, "Connect-Protocol-Version": "1"}, body)


def framed(payload, flags=0, length=None):
    return struct.pack(">BI", flags, len(payload) if length is None else length) + payload


def is_error(answer):
    """Of a call, or at the end of a stream."""
    status, body = answer
    return status >= 400 or status == 0 or (body[:1] == b"\x02" and b'"error"' in body)


def head(path, headers, *more):
    """The first bytes of a request with a body."""
    named = (f"{name}: {value}" for name, value in headers.items())
    return "\r\n".join([f"POST {path} HTTP/1.1", f"Host: {URL.hostname}:{URL.port}", *named, *more, "", ""]).encode()


def flood(begin, piece, limit):
    """Sends until it is refused or the limit is reached. What was answered, and how many bytes were taken."""
    connection = socket.create_connection((URL.hostname, URL.port), timeout=60)
    sent, answer = 0, b""
    try:
        connection.sendall(begin)
        while sent < limit:
            connection.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    connection.settimeout(10)
    try:
        answer = connection.recv(65536)
    except OSError:
        pass
    connection.close()
    return answer, sent


def alive():
    begin = time.monotonic()
    assert victim.is_running() and victim.files.read("secret") == "of the victim"
    assert watched.pid in [process.pid for process in victim.commands.list()]
    assert attacker.commands.run("echo alive").stdout == "alive\n"
    assert time.monotonic() - begin < 20


def finish():
    """The daemon lives and stayed small, and the other sandbox is as it was."""
    alive()
    assert victim.commands.run("ls /home/user").stdout == "secret\n"
    grown = memory() - BEFORE
    assert grown < 150, f"the daemon holds {grown} MiB more"
    assert watched.kill() and victim.kill() and attacker.kill()
