"""Messages and frames that are none."""

import json
import os

from attacker import FILES, GOOD, MINE, PROCESS, alive, ask, attacker, finish, framed, is_error, rpc

DEEP = b"[" * 100_000
JSON = {**GOOD, "Content-Type": "application/json"}
for body in (
    b"{",
    b"[]",
    b"null",
    b"\0" * 100,
    DEEP,
    b'{"templateID": "' + b"x" * 500_000 + b'"}',
    b'{"timeout": -1}',
    b'{"timeout": 1e400}',
    b'{"metadata": 5}',
    b'{"envVars": {"A": 7}}',
):
    status, answer = ask("POST", "/v2/sandboxes", JSON, body)
    assert 400 <= status < 500, (body[:40], status, answer)
    for method, path in [("POST", "timeout"), ("PUT", "network")]:
        status, answer = ask(method, f"/sandboxes/{attacker.sandbox_id}/{path}", JSON, body)
        assert 200 <= status < 500, (path, body[:40], status, answer)
attacker.set_timeout(600)

for raw in (
    b"",
    b"\0",
    b"\0\0\0\0",
    framed(b"{}", length=10),
    framed(b"{}", length=0xFFFFFFFF),
    framed(b"", length=0x7FFFFFFF),
    framed(b"{}", flags=1),
    framed(b"{}", flags=0xFF),
    framed(b"{}", flags=2),
    framed(b"{{{{{"),
    framed(DEEP),
    framed(b"\xff\xfe\xfd\xfc"),
    framed(b"[]") + os.urandom(100),
    os.urandom(4096),
):
    for service, method in [(PROCESS, "Start"), (PROCESS, "Connect"), (FILES, "WatchDir")]:
        answer = rpc(service, method, None, raw=raw, streamed=True)
        assert is_error(answer), (method, raw[:20], answer)
    status, answer = rpc(PROCESS, "StreamInput", None, raw=raw, streamed=True)
    assert status == 200 and answer, (raw[:20], status, answer)

for raw in (b"{", DEEP, os.urandom(1000), b'{"process": {"pid": 99999999999999}}', b'{"process": {}}', b'{"path": 7, "source": 8, "watcherId": 9}'):
    for service, method in [
        (PROCESS, "SendInput"),
        (PROCESS, "SendSignal"),
        (PROCESS, "CloseStdin"),
        (PROCESS, "Update"),
        (FILES, "Move"),
        (FILES, "Remove"),
        (FILES, "GetWatcherEvents"),
        (FILES, "RemoveWatcher"),
    ]:
        status, answer = rpc(service, method, None, raw=raw)
        assert 400 <= status < 500, (method, raw[:20], status, answer)
        assert json.loads(answer)["code"], answer

for message in (
    {"process": {"cmd": ""}},
    {"process": {"cmd": "/bin/\0sh"}},
    {"process": {"cmd": "/bin/sh", "args": ["-c", "a\0b"]}},
    {"process": {"cmd": "/bin/true", "envs": {"A=B": "c", "": "d"}}},
    {"process": {"cmd": "/bin/true", "cwd": "/\0"}},
    {"process": {"cmd": "/bin/true", "args": ["x" * 200_000] * 40}},
    {"process": {"cmd": "../../../../bin/no-such"}},
    {"process": {"cmd": "/bin/true"}, "pty": {"size": {"cols": 0, "rows": 4_000_000_000}}},
):
    status, body = rpc(PROCESS, "Start", message, streamed=True)
    assert status == 200 and (b'"error"' in body or b'"end"' in body), (str(message)[:60], status, body[:200])
    assert b"internal" not in body, (str(message)[:60], body[:300])

# Many that begin and are left in the middle.
for number in range(50):
    attacker.commands.run("sleep 60", background=True).disconnect()
alive()
assert len(attacker.commands.list()) == 50
finish()
