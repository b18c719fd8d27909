"""Names of files that lead elsewhere, or would. Whatever the name is, it is one in the attacker's own sandbox."""

import os
import socket
import urllib.parse

from attacker import DAEMON, FILES, MINE, URL, ask, attacker, finish, rpc, victim

# A file of this machine where sandboxes have a folder of their own, and what is in the other sandbox.
SECRET = os.environ["HOST_SECRET"]
OCTETS = {**MINE, "Content-Type": "application/octet-stream"}
FORM = {**MINE, "Content-Type": "multipart/form-data; boundary=b"}


def untouched():
    with open(SECRET) as file:
        assert file.read() == "of the host"
    assert victim.files.read("secret") == "of the victim"


def check(answer, what):
    status, body = answer
    assert status not in (0, 500), (what, status, body)
    assert b"of the host" not in body and b"of the victim" not in body, (what, status, body)


attacker.commands.run(
    "mkdir folder; cd folder; ln -s / root; ln -s ../../../../../../.. up; ln -s /proc/1/root init;"
    "ln -s loop loop; ln -s /proc/self/root self; mkfifo pipe; ln -s $SECRET secret",
    envs={"SECRET": SECRET},
)
below = SECRET.lstrip("/")
for path in (
    SECRET,
    "//" + SECRET,
    SECRET + "\0.txt",
    "../" * 20 + below,
    "/home/user/" + "../" * 20 + below,
    "folder/secret",
    "folder/root" + SECRET,
    "folder/up" + SECRET,
    "folder/init" + SECRET,
    "folder/self" + SECRET,
    "folder/../../.." + SECRET,
    "/proc/1/root" + SECRET,
    "/proc/self/root" + SECRET,
    "/proc/self/cwd/../../../.." + SECRET,
    f"/proc/{DAEMON}/root{SECRET}",
    "/proc/self/fd/3",
    "..%2f" * 20 + below,
    "%2e%2e/" * 20 + below,
    "..\\" * 20 + below,
    "~/../.." + SECRET,
    "~root/secret",
    "/home/user/../../home/user/secret",
):
    query = urllib.parse.urlencode({"path": path})
    check(ask("GET", f"/files?{query}", MINE), path)
    check(ask("GET", f"/files?path={urllib.parse.quote(urllib.parse.quote(path))}", MINE), path)
    for call, message in [
        ("Stat", {"path": path}),
        ("ListDir", {"path": path, "depth": 3}),
        ("MakeDir", {"path": path}),
        ("Move", {"source": path, "destination": "/home/user/stolen"}),
        ("Move", {"source": "/home/user/folder/root", "destination": path}),
        ("Remove", {"path": path}),
        ("CreateWatcher", {"path": path, "recursive": True}),
    ]:
        check(rpc(FILES, call, message), (call, path))
    check(ask("POST", f"/files?{query}", OCTETS, b"by the attacker"), path)
    name = path.replace("\0", "\x01").replace("\\", "\\\\").encode()
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + name + b'"\r\n\r\nby the attacker\r\n--b--\r\n'
    check(ask("POST", "/files", FORM, form), path)
    stolen = attacker.commands.run("cat stolen 2>/dev/null || true; rm -rf stolen").stdout
    assert "of the host" not in stolen and "of the victim" not in stolen, (path, stolen)
    attacker.commands.run("mkdir -p folder; ln -sfn / folder/root; ln -sfn /proc/1/root folder/init; rm -f folder/loop folder/pipe; ln -s loop folder/loop; mkfifo folder/pipe")
    untouched()

# What has no end, or no beginning, is not waited for.
for path in ("a\0b", "\0", "x" * 5000, "a/" * 3000 + "b", "folder/loop", "folder/pipe", "/dev/full", "/dev/ptmx", "/proc/self/mem", "/proc/kmsg"):
    query = urllib.parse.urlencode({"path": path})
    named = "".join(f"{name}: {value}\r\n" for name, value in MINE.items())
    with socket.create_connection((URL.hostname, URL.port), timeout=10) as connection:
        connection.sendall(f"GET /files?{query} HTTP/1.1\r\nHost: localhost\r\n{named}\r\n".encode())
        try:
            answer = connection.recv(200)
        except TimeoutError:
            raise AssertionError(f"{path[:40]} is waited for") from None
    assert answer.startswith(b"HTTP/1.1 4"), (path[:40], answer)
for path in ("folder/pipe", "/dev/full", "/dev/null"):
    check(ask("POST", "/files?" + urllib.parse.urlencode({"path": path}), OCTETS, b"x" * 100_000), path)

# A folder that becomes a link while it is looked at.
turning = "mkdir -p race; cd race; while :; do ln -sn / way; rm way; mkdir way; rmdir way; done"
attacker.commands.run(turning, background=True, timeout=0)
for _ in range(100):
    for path in ("race/way" + SECRET, "race/way/home/user/../.." + SECRET, "race/../race/way" + SECRET):
        query = urllib.parse.urlencode({"path": path})
        check(ask("GET", f"/files?{query}", MINE), path)
        check(ask("POST", f"/files?{query}", OCTETS, b"by the attacker"), path)
untouched()
finish()
