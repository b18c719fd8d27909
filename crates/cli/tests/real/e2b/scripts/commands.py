"""Commands: streams, callbacks, input, kill, list, join, timeouts, users, folders, variables, exit codes."""

import time

from client import VERSION, Sandbox, refused, until
from e2b import CommandExitException, TimeoutException

sandbox = Sandbox.create(timeout=300, envs={"GIVEN": "by create"})
run = sandbox.commands.run

# Streams and codes.
done = run("echo out; echo err >&2; printf 'no newline'")
assert (done.stdout, done.stderr, done.exit_code) == ("out\nno newline", "err\n", 0), done
for code in (1, 3, 77, 127, 255):
    try:
        run(f"echo said; exit {code}")
        raise AssertionError("it did not fail")
    except CommandExitException as error:
        assert (error.exit_code, error.stdout) == (code, "said\n"), error
try:
    run("no-such-program --please")
    raise AssertionError("it did not fail")
except CommandExitException as error:
    assert error.exit_code == 127 and "no-such-program" in error.stderr, error

# As they come.
told = []
run("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.05; done", on_stdout=told.append, on_stderr=told.append)
text = "".join(told)
assert [c for c in text if c in "123e"] and text.count("e") == 3 and sorted(text) == sorted("1\n2\n3\ne1\ne2\ne3\n"), told
assert len(told) >= 2, told

# Much, in every kind of byte that is text, and none that is cut between two messages.
# Old releases read each message by itself.
long = run("python3 -c \"import sys; sys.stdout.write('äöü€😀' * 200000)\"").stdout
assert long == "äöü€😀" * 200000 or VERSION < (2, 45), len(long)
assert len(run("head -c 5000000 /dev/zero | tr '\\0' x").stdout) == 5000000
assert run("printf 'a\\377b'").stdout == "a\ufffdb"

# Variables, folders, users.
assert run("echo $GIVEN $HOME $USER $LOGNAME; pwd; whoami").stdout == "by create /home/user user user\n/home/user\nuser\n"
assert run("echo $GIVEN $MORE", envs={"GIVEN": "by run", "MORE": "ä b"}).stdout == "by run ä b\n"
assert run("echo $E2B_SANDBOX").stdout == "true\n"
assert run("pwd", cwd="/tmp").stdout == "/tmp\n"
run("mkdir -p folder/inner")
assert run("pwd", cwd="/home/user/folder/inner").stdout == "/home/user/folder/inner\n"
said = refused(Exception, run, "pwd", cwd="/no/such/folder")
assert "/no/such/folder" in said, said
assert run("whoami", user="user").stdout == "user\n"
refused(Exception, run, "whoami", user="nobody-of-this-name")
try:
    assert run("whoami; id -u", user="root").stdout == "root\n0\n"
    IS_ROOT = True
except CommandExitException:
    raise
except Exception as error:
    # A daemon of an ordinary user has one user to give.
    assert "root" in str(error), error
    IS_ROOT = False

# In the background: input, list, join, kill.
cat = run("cat; echo end", background=True, stdin=True)
sandbox.commands.send_stdin(cat.pid, "one\n")
sandbox.commands.send_stdin(cat.pid, "zwei ü\n")
if hasattr(type(getattr(sandbox.commands, "_inner", sandbox.commands)), "close_stdin"):
    sandbox.commands.close_stdin(cat.pid)
    assert cat.wait().stdout == "one\nzwei ü\nend\n"
else:
    until("the echo", lambda: cat.pid in [process.pid for process in sandbox.commands.list()])
    assert cat.kill()
# Without input it is at its end at once.
assert run("cat; echo end").stdout == "end\n"

sleeper = run("sleep 1000", background=True, envs={"A": "b"}, cwd="/tmp")
[process] = [process for process in sandbox.commands.list() if process.pid == sleeper.pid]
assert (process.cmd, process.args[-1], process.cwd) == ("/bin/bash", "sleep 1000", "/tmp"), process
assert process.envs.get("A") == "b", process
assert sleeper.kill()
refused(CommandExitException, sleeper.wait)
until("it to be gone", lambda: sleeper.pid not in [process.pid for process in sandbox.commands.list()])
assert not sandbox.commands.kill(sleeper.pid)
assert not sandbox.commands.kill(4_000_000)
refused(Exception, sandbox.commands.send_stdin, 4_000_000, "x")

# Two hear the same end, and who comes late hears it, too.
writer = run("while [ ! -e go ]; do sleep 0.02; done; echo first; echo second >&2; exit 5", background=True)
joined = sandbox.commands.connect(writer.pid)
again = Sandbox.connect(sandbox.sandbox_id).commands.connect(writer.pid)
assert joined.pid == writer.pid == again.pid
run("touch go")
for handle in (writer, joined, again):
    try:
        handle.wait()
        raise AssertionError("it did not fail")
    except CommandExitException as error:
        assert (error.exit_code, error.stdout, error.stderr) == (5, "first\n", "second\n"), error
refused(Exception, sandbox.commands.connect, 4_000_000)

# Who leaves does not end it.
left = run("sleep 0.3; echo done > left", background=True)
left.disconnect()
until("the command to end by itself", lambda: run("cat left 2>/dev/null || true").stdout == "done\n")

# A time that is too short ends it, and the process is gone.
begin = time.monotonic()
refused(TimeoutException, run, "sleep 100", timeout=1)
assert time.monotonic() - begin < 20
until("the sleeper to be gone", lambda: not [p for p in sandbox.commands.list() if "sleep 100" in p.args])
assert run("sleep 0.2; echo in time", timeout=0).stdout == "in time\n"

# Ended by a signal.
try:
    run("kill -9 $$")
    raise AssertionError("it did not fail")
except CommandExitException as error:
    assert error.exit_code in (-1, 137), error

# Many at once.
crowd = [run(f"sleep 0.1; echo {number}", background=True) for number in range(20)]
assert [handle.wait().stdout for handle in crowd] == [f"{number}\n" for number in range(20)]

# No sandbox is in another one.
other = Sandbox.create(timeout=60)
secret = run("sleep 1000", background=True)
assert other.commands.list() == []
assert not other.commands.kill(secret.pid)
refused(Exception, other.commands.connect, secret.pid)
assert secret.kill() and other.kill() and sandbox.kill()
