"""Wrong tokens, foreign hosts and origins, names that are no names."""

import urllib.parse

from attacker import FILES, GOOD, KEY, MINE, PROCESS, THEIRS, TOKEN, alive, ask, attacker, finish, is_error, rpc, victim, watched

START = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "true"]}}

# Wrong tokens, of all kinds, on every route.
nobody = {name: value for name, value in MINE.items() if name != "X-Access-Token"}
for headers in (
    nobody,
    {**MINE, "X-Access-Token": ""},
    {**MINE, "X-Access-Token": TOKEN[:-1]},
    {**MINE, "X-Access-Token": TOKEN + "0"},
    {**MINE, "X-Access-Token": TOKEN.replace(attacker.sandbox_id, victim.sandbox_id)},
    {**MINE, "X-Access-Token": KEY},
    {**MINE, "X-Access-Token": "\xff" * 64},
    {**MINE, "X-Access-Token": "0" * 60_000},
    THEIRS,
):
    for service, method, message, streamed in [
        (PROCESS, "List", {}, False),
        (PROCESS, "Start", START, True),
        (PROCESS, "Connect", {"process": {"pid": watched.pid}}, True),
        (PROCESS, "SendSignal", {"process": {"pid": watched.pid}, "signal": "SIGNAL_SIGKILL"}, False),
        (FILES, "Stat", {"path": "/home/user/secret"}, False),
        (FILES, "ListDir", {"path": "/"}, False),
        (FILES, "Remove", {"path": "/home/user/secret"}, False),
        (FILES, "WatchDir", {"path": "/home/user"}, True),
    ]:
        status, body = rpc(service, method, message, headers, streamed=streamed)
        assert status in (0, 401, 403, 431) or is_error((status, body)), (headers, method, status, body)
    for method in ("GET", "POST"):
        status, body = ask(method, "/files?path=/home/user/secret", headers, b"")
        assert status in (0, 401, 403, 431), (headers, method, status, body)
        assert b"of the victim" not in body
for key in (None, "", KEY[:-1], KEY + "0", "e2b_", TOKEN, "x" * 50_000):
    headers = {} if key is None else {"X-API-Key": key}
    for method, path in [
        ("GET", "/v2/sandboxes"),
        ("POST", "/v2/sandboxes"),
        ("DELETE", f"/sandboxes/{victim.sandbox_id}"),
        ("POST", f"/sandboxes/{victim.sandbox_id}/pause"),
        ("POST", f"/sandboxes/{victim.sandbox_id}/snapshots"),
        ("GET", "/snapshots"),
        ("GET", "/templates"),
        ("GET", "/v1/sandboxes"),
    ]:
        status, _ = ask(method, path, headers)
        assert status in (0, 401, 403, 431), (key, method, path, status)
alive()

# Pages from elsewhere, and names that were made to lead here.
for headers in (
    {"Host": "evil.example"},
    {"Host": f"49983-{attacker.sandbox_id}.evil.example"},
    {"Host": f"49983-{attacker.sandbox_id}.localhost.evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "file://"},
):
    for more, path in [(GOOD, "/v2/sandboxes"), (MINE, "/files?path=/etc/hostname"), (MINE, "/metrics")]:
        status, body = ask("GET", path, {**more, **headers})
        assert status in (401, 403, 404, 421, 502), (headers, path, status, body)
        assert status != 502 or b"was not found" in body, body
status, _ = rpc(PROCESS, "Start", START, {**MINE, "Origin": "https://evil.example"}, streamed=True)
assert status == 403, status

# Names that are no names.
for id in ("..", "../..", "%2e%2e", "*", "x" * 5000, "'; drop table sandboxes; --", "0", "-", "%00", "ä"):
    quoted = urllib.parse.quote(id, safe="%")
    for method, path in [("GET", f"/sandboxes/{quoted}"), ("DELETE", f"/sandboxes/{quoted}"), ("POST", f"/sandboxes/{quoted}/fork"), ("DELETE", f"/templates/{quoted}")]:
        status, body = ask(method, path, GOOD)
        assert 400 <= status < 500 or status == 501, (method, path, status, body)
    status, _ = ask("GET", "/health", {"E2b-Sandbox-Id": id.encode("utf-8").decode("latin1"), "E2b-Sandbox-Port": "49983"})
    assert status in (400, 401, 404, 502), (id, status)
for port in ("0", "-1", "65536", "99999999999", "x", "49983.5"):
    status, _ = ask("GET", "/files?path=/etc/hostname", {**nobody, "E2b-Sandbox-Port": port})
    assert status >= 400, (port, status)

finish()
