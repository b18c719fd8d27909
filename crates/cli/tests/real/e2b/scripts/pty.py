"""Terminals: made, typed into, resized, joined, killed."""

import e2b
from client import KIND, Sandbox, refused, until
from e2b import PtySize

sandbox = Sandbox.create(timeout=120, envs={"GIVEN": "by create"})
BLOCKING = KIND != "async"


def create(on_data, **options):
    size = PtySize(rows=30, cols=100)
    if BLOCKING:
        return sandbox.pty.create(size=size, timeout=60, **options)
    return sandbox.pty.create(size=size, on_data=on_data, timeout=60, **options)


def ended(handle, on_data):
    """Hears all of it to its end, whatever its code."""
    try:
        handle.wait(on_pty=on_data) if BLOCKING else handle.wait()
    except e2b.CommandExitException as error:
        return error.exit_code
    return 0


def type_in(handle, text):
    sandbox.pty.send_stdin(handle.pid, text.encode())


shown = []
hear = shown.append
pty = create(hear, cwd="/tmp", envs={"MORE": "variables"})
assert pty.pid in [process.pid for process in sandbox.commands.list()]
type_in(pty, "echo \"[$TERM|$GIVEN|$MORE|$(pwd)|$(tput cols)x$(tput lines)]\"\n")
type_in(pty, "test -t 0 && test -t 1 && echo is-a-$((1+1))-terminal > /home/user/told\n")
until("the terminal", lambda: sandbox.commands.run("cat told 2>/dev/null || true").stdout == "is-a-2-terminal\n")
sandbox.pty.resize(pty.pid, PtySize(rows=50, cols=133))
type_in(pty, "stty size > size; echo written >> size; cat size > /home/user/size\n")
until("the size", lambda: sandbox.commands.run("cat size 2>/dev/null || true").stdout == "50 133\nwritten\n")
type_in(pty, "exit 7\n")
assert ended(pty, hear) == 7
text = b"".join(bytes(piece) for piece in shown).decode()
assert "[xterm-256color|by create|variables|/tmp|100x30]" in text, text
refused(Exception, type_in, pty, "x")

# Ctrl-C reaches who is in front.
shown.clear()
pty = create(hear)
type_in(pty, "sleep 1000; echo code-$?\n")
until("the sleep", lambda: "sleep" in sandbox.commands.run("ps -o comm= -t $(ls /dev/pts | grep -v ptmx | paste -sd,) || true").stdout)
type_in(pty, "\x03")
type_in(pty, "echo free-$((40+2)) > /home/user/free\n")
until("the prompt", lambda: sandbox.commands.run("cat free 2>/dev/null || true").stdout == "free-42\n")
assert sandbox.pty.kill(pty.pid)
assert ended(pty, hear) != 0
until("it to be gone", lambda: not sandbox.pty.kill(pty.pid))

# Another joins, and hears what comes from then on.
inner = getattr(sandbox.pty, "_inner", sandbox.pty)
if hasattr(type(inner), "connect"):
    heard = []
    pty = create(hear)
    if BLOCKING:
        joined = sandbox.pty.connect(pty.pid, timeout=60)
    else:
        joined = sandbox.pty.connect(pty.pid, on_data=heard.append, timeout=60)
    assert joined.pid == pty.pid
    type_in(pty, "echo joined-$((1+2)); exit\n")
    assert ended(joined, heard.append) == 0
    assert "joined-3" in b"".join(bytes(piece) for piece in heard).decode(), heard
assert sandbox.kill()
