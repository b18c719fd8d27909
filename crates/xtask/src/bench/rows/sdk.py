"""Makes sandboxes and runs a command in each, through E2B's SDK or the native API. Each line of standard input is an order."""

import http.client
import json
import os
import sys
import time
import urllib.parse

from e2b import Sandbox

URL = urllib.parse.urlsplit(os.environ["E2B_API_URL"])
HEADERS = {"Authorization": "Bearer " + os.environ["E2B_API_KEY"].removeprefix("e2b_"), "Content-Type": "application/json"}
CONNECTION = http.client.HTTPConnection(URL.hostname, URL.port, timeout=60)


def call(method, path, body=None):
    CONNECTION.request(method, path, None if body is None else json.dumps(body), HEADERS)
    answer = CONNECTION.getresponse()
    text = answer.read()
    assert answer.status < 300, text
    return text


def sdk():
    begin = time.perf_counter()
    sandbox = Sandbox.create(timeout=60)
    assert sandbox.commands.run("true").exit_code == 0
    taken = time.perf_counter() - begin
    sandbox.kill()
    return taken


def native():
    begin = time.perf_counter()
    request = {
        "workspace": "none",
        "net": {"gateway": {"otherwise": "public"}},
        "limits": {"ttl": "60s"},
        "account": {"name": "user", "home": "/home/user"},
        "context": {"env": [{"name": "PATH", "value": os.environ["PATH"]}], "cwd": "/home/user"},
    }
    id = json.loads(call("POST", "/v1/sandboxes", request))["id"]
    lines = call("POST", f"/v1/sandboxes/{id}/exec", {"argv": ["/bin/bash", "-l", "-c", "true"]})
    assert b'"code":0' in lines, lines
    taken = time.perf_counter() - begin
    call("DELETE", f"/v1/sandboxes/{id}")
    return taken


for order in sys.stdin:
    print({"sdk": sdk, "native": native}[order.strip()](), flush=True)
