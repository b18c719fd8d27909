"""`get_host`: what listens in a sandbox, over HTTP."""

import http.client
import json
import os
import urllib.parse

from client import Sandbox, until

URL = urllib.parse.urlsplit(os.environ["E2B_API_URL"])
SERVER = r"""
import http.server, json, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if self.path == "/stream":
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number in range(5):
                piece = b"piece %d\n" % number
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
                time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
            return
        told = {"method": self.command, "path": self.path, "length": len(body), "headers": {k.lower(): v for k, v in self.headers.items()}}
        text = b"x" * 3_000_000 if self.path == "/large" else json.dumps(told).encode()
        self.send_response(418 if self.path == "/teapot" else 200)
        self.send_header("content-length", str(len(text)))
        self.send_header("x-of-the-server", "yes")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer

    def log_message(self, *words): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

one, other = Sandbox.create(timeout=120), Sandbox.create(timeout=120)


def ask(sandbox, port, path="/", method="GET", body=None, headers={}):
    host = sandbox.get_host(port)
    assert host == f"{port}-{sandbox.sandbox_id}.localhost:{URL.port}", host
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=30)
    connection.request(method, path, body, {"Host": host, **headers})
    answer = connection.getresponse()
    return answer, answer.read()


for sandbox in (one, other):
    sandbox.files.write("server.py", SERVER)
    sandbox.commands.run("exec python3 server.py 3000", background=True)
    until("the server", lambda: ask(sandbox, 3000)[0].status == 200)
one.commands.run("exec python3 server.py 8000", background=True)
until("the other server", lambda: ask(one, 8000)[0].status == 200)

answer, text = ask(one, 3000, "/a%20b/../c?d=e&d=f", "POST", b"z" * 500_000, {"X-Mine": "ä".encode().decode("latin1"), "Cookie": "k=v"})
told = json.loads(text)
assert (told["method"], told["path"], told["length"]) == ("POST", "/a%20b/../c?d=e&d=f", 500_000), told
assert told["headers"]["cookie"] == "k=v" and "x-mine" in told["headers"], told
assert answer.getheader("x-of-the-server") == "yes"
assert ask(one, 3000, "/teapot", "DELETE")[0].status == 418
assert ask(one, 3000, method="HEAD")[1] == b""
assert len(ask(one, 3000, "/large")[1]) == 3_000_000
assert ask(one, 3000, "/stream")[1] == b"".join(b"piece %d\n" % number for number in range(5))
# The door's own paths are the service's there.
for path in ("/health", "/files", "/sandboxes", "/v1/sandboxes", "/healthz", "/execute", "/process.Process/List"):
    assert json.loads(ask(one, 3000, path)[1])["path"] == path, path
# What opens the daemon is not handed to whoever listens there.
key = os.environ["E2B_API_KEY"]
for headers in ({"X-API-Key": key}, {"Authorization": "Bearer " + key.removeprefix("e2b_")}):
    seen = ask(one, 3000, headers=headers)[1].decode()
    assert key.removeprefix("e2b_") not in seen, seen

# By the headers, as the SDKs say it.
connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=30)
connection.request("GET", "/by-header", headers={"E2b-Sandbox-Id": one.sandbox_id, "E2b-Sandbox-Port": "8000"})
assert json.loads(connection.getresponse().read())["path"] == "/by-header"

# Nothing listens there, there is none, it stands still.
answer, text = ask(one, 3001)
assert answer.status == 502 and b"port is not open" in text, (answer.status, text)
assert ask(other, 8000)[0].status == 502
other.pause()
answer, text = ask(other, 3000)
assert answer.status == 502 and b"was not found" in text, (answer.status, text)
other.connect()
assert ask(other, 3000)[0].status == 200
assert other.kill()
assert ask(other, 3000)[0].status == 502

# A page from elsewhere reads nothing.
answer, text = ask(one, 3000, headers={"Origin": "https://evil.example"})
assert answer.status == 403 or answer.getheader("access-control-allow-origin") is None, (answer.status, text)

# `allow_public_traffic: False` asks for a token.
closed = Sandbox.create(timeout=60, network={"allow_public_traffic": False})
closed.files.write("server.py", SERVER)
closed.commands.run("exec python3 server.py 3000", background=True)
token = closed.traffic_access_token
assert token, "a sandbox that is closed to the public has a token for those who may"
until("the server", lambda: ask(closed, 3000, headers={"E2B-Traffic-Access-Token": token})[0].status == 200)
assert ask(closed, 3000)[0].status in (401, 403)
assert ask(closed, 3000, headers={"E2B-Traffic-Access-Token": "x" * len(token)})[0].status in (401, 403)
assert closed.kill() and one.kill()
