"""Bodies without an end, bodies that do not come, forms that are none, and what is no HTTP."""

import gzip
import os
import socket

from attacker import GOOD, MINE, URL, alive, ask, finish, flood, head

# Giant ones, declared or without an end: refused, or read and not kept.
LIMIT = 128 << 20
CHUNKED, LONG = "Transfer-Encoding: chunked", "Content-Length: 4000000000"
CHUNK = b"10000\r\n" + b"x" * 65536 + b"\r\n"
for path, headers, kind in [
    ("/v2/sandboxes", GOOD, "application/json"),
    ("/process.Process/List", MINE, "application/json"),
    ("/process.Process/SendInput", MINE, "application/json"),
    ("/process.Process/Start", MINE, "application/connect+json"),
    ("/filesystem.Filesystem/Stat", MINE, "application/json"),
]:
    for framing in (LONG, CHUNKED):
        begin = head(path, headers, f"Content-Type: {kind}", framing)
        answer, sent = flood(begin, CHUNK if framing == CHUNKED else b"x" * 65536, LIMIT)
        assert sent < LIMIT, (path, framing, sent, answer[:200])

# A form whose headers do not end, and one that is none.
FORM = "multipart/form-data; boundary=b"
NAMED = b'--b\r\nContent-Disposition: form-data; name="file"; filename="'
for body in (NAMED + b"n" * 8_000_000, b"--b\r\n" + b"X-Header: h\r\n" * 600_000, b"no boundary at all\r\n" * 400_000):
    status, answer = ask("POST", "/files", {**MINE, "Content-Type": FORM}, body)
    assert status in (400, 413), (body[:20], status, answer)
# What goes on for ever is taken for a while, so that the other reads the answer, and not kept.
answer, sent = flood(head("/files", MINE, f"Content-Type: {FORM}", CHUNKED) + b"%x\r\n%s\r\n" % (len(NAMED), NAMED), CHUNK, 1 << 30)
assert sent < 1 << 30 or b" 4" in answer[:16], (sent, answer[:200])

OCTETS = {**MINE, "Content-Type": "application/octet-stream"}
ZIPPED = {**OCTETS, "Content-Encoding": "gzip"}
bomb = gzip.compress(b"\0" * (64 << 20))
status, _ = ask("POST", "/files?path=/home/user/bomb", ZIPPED, bomb)
assert status in (200, 400, 413, 507), status
for torn in (bomb[: len(bomb) // 2], b"no gzip"):
    status, answer = ask("POST", "/files?path=/home/user/torn", ZIPPED, torn)
    assert status == 400, (torn[:10], status, answer)
for kind, body in [
    ("multipart/form-data", b"x"),
    ("multipart/form-data; boundary=", b"x"),
    ("multipart/form-data; boundary=" + "b" * 5000, b"x"),
    ("multipart/form-data; boundary=b", b"--b"),
    ("multipart/form-data; boundary=b", b"--b\r\n\r\n"),
    ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx'),
    ("multipart/form-data; boundary=b", os.urandom(10_000)),
    ("text/plain", b"x"),
]:
    status, answer = ask("POST", "/files", {**MINE, "Content-Type": kind}, body)
    assert 400 <= status < 500, (kind[:60], body[:60], status, answer)
alive()

# Slow ones hold nobody else up.
WHERE = [
    ("/v2/sandboxes", GOOD),
    ("/process.Process/List", MINE),
    ("/process.Process/Start", MINE),
    ("/files?path=/home/user/slow", OCTETS),
]
slow = [socket.create_connection((URL.hostname, URL.port), timeout=60) for _ in range(200)]
for number, connection in enumerate(slow):
    if number % 2:
        connection.sendall(head(*WHERE[number // 2 % 4], "Content-Length: 1000000") + b"{")
    elif number % 4:
        connection.sendall(b"GET /v2/sand")
alive()
for connection in slow:
    connection.close()

# What is no HTTP.
for raw in (
    os.urandom(2000),
    b"\x16\x03\x01\x02\x00",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(500),
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000,
):
    connection = socket.create_connection((URL.hostname, URL.port), timeout=60)
    try:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(100)
        assert b" 200 " not in answer and b" 500 " not in answer, (raw[:40], answer)
    except OSError:
        # Closed is an answer, too.
        pass
    connection.close()
finish()
