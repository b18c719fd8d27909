"""Pause and resume, with memory and without, by hand, at the end of a timeout, and by talking to it."""

import inspect

import e2b
from client import Sandbox, has, pages, refused, takes, until
from e2b import SandboxQuery, SandboxState

pause = "pause" if has("pause") else "beta_pause"


def state(sandbox):
    return sandbox.get_info().state


sandbox = Sandbox.create(timeout=120, metadata={"topic": "pause"})
sandbox.files.write("kept", "file")
counter = sandbox.commands.run("i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.05; done", background=True)
until("it to count", lambda: sandbox.commands.run("cat count 2>/dev/null || true").stdout)
getattr(sandbox, pause)()
assert not sandbox.is_running() and state(sandbox) == SandboxState.PAUSED
query = SandboxQuery(metadata={"topic": "pause"}, state=[SandboxState.PAUSED])
assert [info.sandbox_id for page in pages(Sandbox.list(query=query)) for info in page] == [sandbox.sandbox_id]
# A second time there is nothing to do. Old releases say nothing.
assert getattr(sandbox, pause)() in (False, None)
refused(Exception, sandbox.commands.run, "true")
refused(Exception, Sandbox.set_timeout, sandbox.sandbox_id, 5)

same = Sandbox.connect(sandbox.sandbox_id, timeout=100)
assert same.sandbox_id == sandbox.sandbox_id and same.is_running() and state(sandbox) == SandboxState.RUNNING
assert same.files.read("kept") == "file"
# What ran goes on where it was.
assert counter.pid in [process.pid for process in same.commands.list()]
before = int(same.commands.run("cat count").stdout or 0)
until("it to count on", lambda: int(same.commands.run("cat count").stdout or 0) > before)

if has("pause") and takes(e2b.Sandbox.pause, "keep_memory"):
    # Files only: the processes have ended.
    assert sandbox.pause(keep_memory=False) and not sandbox.is_running()
    sandbox.connect(timeout=100)
    assert sandbox.files.read("kept") == "file"
    assert sandbox.commands.list() == []
    assert sandbox.commands.run("echo $HOME").stdout == "/home/user\n"
if takes(e2b.Sandbox.connect, "on_resume"):
    sleeper = sandbox.commands.run("sleep 1000", background=True)
    assert sandbox.pause()
    sandbox.connect(on_resume="reboot")
    assert sleeper.pid not in [process.pid for process in sandbox.commands.list()]
assert sandbox.kill()

# A paused one can be killed.
sandbox = Sandbox.create(timeout=60)
getattr(sandbox, pause)()
assert sandbox.kill() and not sandbox.kill()

if takes(e2b.Sandbox.create, "lifecycle"):
    sandbox = Sandbox.create(timeout=2, lifecycle={"on_timeout": "pause"})
    assert sandbox.commands.run("echo kept > file; echo done").stdout == "done\n"
    until("its timeout", lambda: state(sandbox) == SandboxState.PAUSED)
    refused(Exception, sandbox.commands.run, "true")
    sandbox.connect(timeout=60)
    assert sandbox.files.read("file") == "kept\n"
    info = sandbox.get_info()
    lifecycle = getattr(info, "lifecycle", None)
    assert lifecycle is None or dict(lifecycle).get("on_timeout") == "pause", lifecycle
    assert sandbox.kill()

    sandbox = Sandbox.create(timeout=2, lifecycle={"on_timeout": "pause", "auto_resume": True})
    sandbox.files.write("file", "kept")
    until("its timeout", lambda: state(sandbox) == SandboxState.PAUSED)
    # Whoever talks to it wakes it.
    assert sandbox.files.read("file") == "kept"
    assert sandbox.commands.run("cat file").stdout == "kept"
    assert state(sandbox) == SandboxState.RUNNING
    assert sandbox.kill()
