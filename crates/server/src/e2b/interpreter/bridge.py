"""A Jupyter kernel, spoken with in lines of JSON: what is to be done on standard input, what comes of it on standard output.

Started by zeno in a sandbox, in a Python that has ipykernel and jupyter_client. Ends with its input, and the kernel with it.
"""

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading

# Longer lines are not taken on the other side.
LIMIT = 15 << 20
# Of text, which can be passed on in pieces.
PIECE = 1 << 20
START = 60
FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}

for name in ("ZENO_BRIDGE", "ZENO_FIND"):
    os.environ.pop(name, None)
# What anything else here prints must not come between the lines.
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)


def say(kind, **fields):
    try:
        text = json.dumps({"type": kind, **fields}, ensure_ascii=False, allow_nan=False, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        return say_error("NotJson", f"the kernel said what is no JSON: {error}")
    line = text.encode("utf-8", "replace") + b"\n"
    if len(line) > LIMIT:
        return say_error("TooLarge", f"one output of {len(line)} bytes is more than the {LIMIT} that are passed on")
    out.write(line)
    out.flush()


def say_error(name, value, traceback=""):
    say("error", name=name, value=value, traceback=traceback)


def say_result(bundle, is_main):
    rest = dict(bundle)
    fields = {field: rest.pop(mime) for mime, field in FIELDS.items() if mime in rest}
    for field in fields.keys() - {"json", "data", "chart"}:
        fields[field] = str(fields[field])
    text = fields.get("text", "")
    # A string is shown as what it holds.
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        fields["text"] = text[1:-1]
    say("result", is_main_result=is_main, extra=rest, **fields)


class Bridge:
    async def start(self):
        from jupyter_client.manager import AsyncKernelManager

        self.manager = AsyncKernelManager()
        # Nobody comes back to the history of a sandbox.
        options = ["--HistoryManager.enabled=False", "--log-level=40"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        await self.manager.start_kernel(extra_arguments=options, **quiet)
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=START)

    async def alive(self):
        return await self.manager.is_alive()

    async def execute(self, code, env):
        if not await self.alive():
            await self.revive()
        elif not env:
            await self.run(code)
        # What is set for one execution does not stay. A kernel that ends meanwhile ends all of it.
        elif await self.run(f'__import__("os").environ.update({env!r})', silent=True) and await self.run(code):
            await self.run("\n".join(map(restored, env)), silent=True)

    async def run(self, code, silent=False):
        """Is the kernel still the same after it?"""
        asked = self.client.execute(
            code, silent=silent, store_history=not silent, allow_stdin=False, stop_on_error=False
        )
        while True:
            try:
                message = await self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                if await self.alive():
                    continue
                await self.revive()
                return False
            if message["parent_header"].get("msg_id") != asked:
                continue
            if is_idle(message):
                break
            if not silent:
                pass_on(message)
        await self.drop_reply(asked)
        return True

    async def drop_reply(self, asked):
        try:
            while (await self.client.get_shell_msg(timeout=5))["parent_header"].get("msg_id") != asked:
                pass
        except queue.Empty:
            pass

    async def revive(self):
        say_error("ContextRestarted", "The kernel has ended, and all that it held is gone. It was started anew")
        await self.manager.restart_kernel(now=True)
        await self.client.wait_for_ready(timeout=START)

    async def interrupt(self):
        await self.manager.interrupt_kernel()

    async def end(self):
        await self.manager.shutdown_kernel(now=True)


def restored(name):
    value = os.environ.get(name)
    if value is None:
        return f'__import__("os").environ.pop({name!r}, None)'
    return f'__import__("os").environ[{name!r}] = {value!r}'


def is_idle(message):
    return message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"


def pass_on(message):
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        text, date = content["text"], stamp(message["header"]["date"])
        for begin in range(0, len(text), PIECE):
            say(content["name"], text=text[begin : begin + PIECE], timestamp=date)
    elif kind == "execute_input":
        say("number_of_executions", execution_count=content["execution_count"])
    elif kind in ("execute_result", "display_data"):
        say_result(content["data"], kind == "execute_result")
    elif kind == "error":
        say_error(content["ename"], content["evalue"], "\n".join(content["traceback"]))


def stamp(date):
    return date.isoformat() if hasattr(date, "isoformat") else str(date)


def listen(loop, commands):
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(commands.put_nowait, json.loads(line))
    loop.call_soon_threadsafe(commands.put_nowait, None)


async def executed(bridge, command):
    try:
        await bridge.execute(command["code"], command["env"])
    except Exception as error:
        say_error(type(error).__name__, f"the kernel could not be talked with: {error}")
    say("end_of_execution")


async def serve():
    loop, commands = asyncio.get_running_loop(), asyncio.Queue()
    loop.add_signal_handler(signal.SIGTERM, commands.put_nowait, None)
    bridge = Bridge()
    try:
        await bridge.start()
    except Exception as error:
        return say("broken", python=sys.executable, reason=f"{type(error).__name__}: {error}")
    threading.Thread(target=listen, args=(loop, commands), daemon=True).start()
    say("ready", python=sys.executable, cwd=os.getcwd())
    execution = None
    while (command := await commands.get()) is not None:
        if command["do"] == "execute":
            execution = loop.create_task(executed(bridge, command))
        elif execution is not None and not execution.done():
            await bridge.interrupt()
    await bridge.end()


asyncio.run(serve())
# Threads of libraries are not waited for.
os._exit(0)
